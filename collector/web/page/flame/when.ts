// SPDX-License-Identifier: Apache-2.0
// When a profile of samples saw what, in a file: its heat maps, one for each metric, stand in it. A drag names the part, as the command that
// draws it: the file has no samples by time.
import type { Heat } from "../api";
import { fill, h } from "../dom";
import { HeatMap, type Part } from "../heat";

/** As the file has them: what is the same in each of them stands once. */
export type HeatFile = Omit<Heat, "metric" | "unit" | "adds_up" | "lowest" | "highest" | "states" | "values">
  & { maps: Pick<Heat, "metric" | "unit" | "adds_up" | "lowest" | "highest" | "states" | "values">[] };

export class When {
  private readonly command = h("p", { class: "quiet", role: "status" });
  private readonly map = new HeatMap(({ part }) => this.name(part), true);
  readonly element = h("div", {}, this.map.element, this.command);
  private part: Part | null = null;

  constructor(private readonly file: HeatFile) {}

  /** By the metric of the flame graph; where that counts looks, which are as many all the time, by those that found something. */
  show(metric: string | undefined): void {
    const { maps, ...rest } = this.file, map = maps.find(m => m.metric === metric) ?? maps[0];
    if (map) { this.map.show({ ...rest, ...map }, { part: this.part, other: null }); }
  }

  private name(part: Part | null): void {
    const seconds = (ms: number): string => `${Number((ms / 1000).toFixed(3))}s`;
    this.part = part;
    fill(this.command, ...(part ? [h("code", {}, `kprof flame --profile ${this.file.profile} --from ${seconds(part[0])} --to ${seconds(part[1])}` +
      " --out part.html"), " draws this part."] : []));
  }
}
