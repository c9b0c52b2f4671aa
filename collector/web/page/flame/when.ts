// SPDX-License-Identifier: Apache-2.0
// When a profile of samples saw what, in a file: its heat maps, one for each metric, stand in it. A drag chooses the part that is drawn, as far
// as the file has its samples, and names it as the command that draws it.
import type { Heat } from "../api";
import { fill, h } from "../dom";
import { HeatMap, type Part, type Parts } from "../heat";

/** As the file has them: what is the same in each of them stands once. */
export type HeatFile = Omit<Heat, "metric" | "unit" | "adds_up" | "lowest" | "highest" | "states" | "values" | "profile">
  & { profile: number; through?: number; maps: Pick<Heat, "metric" | "unit" | "adds_up" | "lowest" | "highest" | "states" | "values">[] };

export class When {
  private readonly command = h("p", { class: "quiet", role: "status" });
  private readonly map: HeatMap;
  readonly element: HTMLElement;
  private parts: Parts = { part: null, other: null };
  private metric: string | undefined;

  /** chosen: draws them; null: the file has too many samples for that, and a part is only named. */
  constructor(private readonly file: HeatFile, private readonly chosen: ((parts: Parts) => void) | null) {
    this.map = new HeatMap(parts => {
      this.parts = parts;
      this.name(parts.part);
      this.chosen?.(parts);
      this.show(this.metric);
    }, chosen === null ? "never" : "all");
    this.element = h("div", {}, this.map.element, this.command);
  }

  /** By the metric of the flame graph; where that counts looks, which are as many all the time, by those that found something. */
  show(metric: string | undefined): void {
    this.metric = metric;
    const { maps, ...rest } = this.file, map = maps.find(m => m.metric === metric) ?? maps[0];
    if (map) { this.map.show({ ...rest, ...map }, this.parts); }
  }

  private name(part: Part | null): void {
    const { through } = this.file, seconds = (ms: number): string => `${Number((ms / 1000).toFixed(3))}s`;
    fill(this.command, ...(part ? [h("code", {}, `kprof flame --profile ${this.file.profile}${through ? ` --through ${through}` : ""} --from ${seconds(part[0])} --to ${seconds(part[1])}` +
      " --out part.html"), this.chosen ? " draws it from the database." : " draws this part: it has too many samples for this file."] : []));
  }
}
