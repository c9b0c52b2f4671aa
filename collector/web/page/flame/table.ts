// SPDX-License-Identifier: Apache-2.0
// The table of functions beside a flame graph: what each weighs by itself and with all that it calls; of two profiles also how its own
// weight has changed. Sorted by any column.
import { fill, h } from "../dom";
import { figure, percent } from "../format";
import type { Frame } from "./data";
import type { Weight } from "./tree";

/** Rows that are shown until somebody asks for all. */
const FIRST = 100;

export interface TableListener {
  /** -1: none. */
  outline(frame: number): void;
  pick(frame: number): void;
}

export interface TableContent {
  frames: Frame[];
  weights: Weight[];
  unit: string;
  /** The whole. */
  total: number;
  /** What a weight before counts; null: there is none. */
  scale: number | null;
  match: Uint8Array | null;
}

type Column = "name" | "self" | "total" | "change";

export class FunctionTable {
  readonly element = h("div", { class: "flame-table", tabindex: 0, role: "region", "aria-label": "Functions" });
  private column: Column = "self";
  private falling = true;
  private all = false;
  private content: TableContent | null = null;

  constructor(private listener: TableListener) {
    this.element.addEventListener("mouseleave", () => listener.outline(-1));
  }

  show(content: TableContent): void {
    if (!this.content) { this.column = content.scale === null ? "self" : "change"; }
    this.content = content;
    this.draw();
  }

  private changeOf(w: Weight): number { return w.self - w.beforeSelf * (this.content!.scale ?? 0); }

  private sorted(): Weight[] {
    const { frames, weights, match, scale } = this.content!;
    const worth = (w: Weight): number => this.column === "total" ? w.total : this.column === "change" ? Math.abs(this.changeOf(w)) : w.self;
    const list = weights.filter(w => (!match || match[w.frame]) && (w.total > 0 || (scale !== null && w.beforeTotal > 0)));
    const name = (w: Weight): string => frames[w.frame]!.name;
    const order = (a: Weight, b: Weight): number =>
      (this.column === "name" ? 0 : worth(b) - worth(a)) || (name(a) < name(b) ? -1 : 1);
    list.sort((a, b) => (this.column === "name") === this.falling ? -order(a, b) : order(a, b));
    return list;
  }

  private sortBy(column: Column): void {
    this.falling = this.column === column ? !this.falling : column !== "name";
    this.column = column;
    this.draw();
    this.element.querySelector<HTMLElement>(`[data-column="${column}"]`)?.focus();
  }

  private head(column: Column, text: string): HTMLElement {
    const here = this.column === column;
    return h("th", { scope: "col", class: column, "aria-sort": here ? (this.falling ? "descending" : "ascending") : "none" },
      h("button", { type: "button", "data-column": column, onclick: () => this.sortBy(column) },
        text, h("span", { "aria-hidden": true }, here ? (this.falling ? " ▾" : " ▴") : "")));
  }

  private weight(value: number): HTMLElement {
    const { total, unit } = this.content!;
    const cell = h("td", { title: percent(value, total) }, figure(value, unit));
    cell.style.backgroundSize = `${total > 0 ? 100 * value / total : 0}% 3px`;
    return cell;
  }

  private change(w: Weight): HTMLElement {
    const by = this.changeOf(w), text = figure(Math.abs(by), this.content!.unit);
    return h("td", { class: by > 0 ? "more" : by < 0 ? "less" : "" }, by === 0 ? "0" : `${by > 0 ? "▲ +" : "▼ −"}${text}`);
  }

  private row(w: Weight): HTMLElement {
    const f = this.content!.frames[w.frame]!, on = () => this.listener.outline(w.frame);
    return h("tr", { onmouseover: on },
      h("th", { scope: "row" }, h("button", {
        type: "button", title: f.application ? `${f.name}, of ${f.application}` : f.name,
        onfocus: on, onblur: () => this.listener.outline(-1), onclick: () => this.listener.pick(w.frame),
      }, f.name)),
      this.weight(w.self), this.weight(w.total), this.content!.scale !== null && this.change(w));
  }

  private draw(): void {
    const list = this.sorted(), seen = this.all ? list : list.slice(0, FIRST), compared = this.content!.scale !== null;
    fill(this.element,
      h("table", {},
        h("thead", {}, h("tr", {}, this.head("name", "Function"), this.head("self", "Self"), this.head("total", "Total"),
          compared && this.head("change", "Self, change"))),
        h("tbody", {}, ...seen.map(w => this.row(w)))),
      list.length === 0 && h("p", { class: "flame-none" }, "No function matches."),
      seen.length < list.length && h("button", { type: "button", class: "flame-all", onclick: () => {
        this.all = true;
        this.draw();
      } }, `show all ${list.length.toLocaleString("en")} functions`));
  }
}
