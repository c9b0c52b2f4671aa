// SPDX-License-Identifier: Apache-2.0
// The tiers that the requests of an identity go through, as a tree: what each takes by itself and waits for, where it was called from.
import type { Path } from "./api";
import { h } from "./dom";
import { knownBy, knownOf } from "./identities";
import { count, duration } from "./numbers";
import { bar, type Column, showTable } from "./table";

type Line = Path & { at: number; children: boolean };

const waiting = (l: Line): number => l.waiting_per_request_us ?? l.wait_per_request_us;

export class Paths {
  private readonly rows = h("div", {});
  private readonly none = h("p", { class: "quiet" }, "No path of this stretch is kept.");
  readonly element = h("section", { class: "rows paths", tabindex: "0", "aria-label": "Paths" }, h("h2", {}, "Paths"), this.none, this.rows);
  private readonly closed = new Set<string>();
  private all: Line[] = [];
  private mean = 1;

  /** Depth first, as the server has them; mean: of the whole request, µs. */
  show(paths: Path[], mean: number): void {
    this.all = paths.map((p, at) => ({ ...p, at, children: paths.some(q => q.parent === at) }));
    this.mean = mean;
    this.draw();
  }

  private nameOf(line: Line): string {
    const names = [line.tier];
    for (let up = line.parent; up !== null && this.all[up] && names.length < 100; up = this.all[up].parent) { names.unshift(this.all[up].tier); }
    return names.join(" › ");
  }

  private hidden(line: Line): boolean {
    let up = line.parent;
    for (let steps = 0; up !== null && this.all[up] && steps < 100; steps++) {
      if (this.closed.has(this.nameOf(this.all[up]))) { return true; }
      up = this.all[up].parent;
    }
    return false;
  }

  private name(line: Line): HTMLElement {
    const path = this.nameOf(line), open = !this.closed.has(path);
    const fold = line.children ? h("button", { class: "fold", "aria-expanded": String(open), "data-focus": `fold ${path}`, title: path,
      onclick: () => {
        open ? this.closed.add(path) : this.closed.delete(path);
        this.draw();
      } }, h("span", { "aria-hidden": "true" }, open ? "▾ " : "▸ "), line.tier) : h("span", { class: "leaf", title: path }, line.tier);
    const cell = h("span", { class: "path" }, fold);
    cell.style.paddingLeft = `${Math.min(line.depth, 12) * 16}px`;
    return cell;
  }

  private draw(): void {
    const requests = (l: Line): string => l.calls > 0 ? count(l.calls) : "–";
    const columns: Column<Line>[] = [
      { key: "path", head: "Tier, below its callers", text: true, value: l => l.at, cell: l => this.name(l) },
      { key: "calls", head: "Calls", wide: true, value: l => l.calls, cell: l => requests(l) },
      { key: "self", head: "Own time per request", value: l => l.self_per_request_us,
        cell: l => bar(duration(l.self_per_request_us), l.self_per_request_us / this.mean, l.tier) },
      { key: "wait", head: "Waiting before it", value: l => waiting(l),
        cell: l => h("span", { title: knownOf(l) }, bar(duration(waiting(l)), waiting(l) / this.mean, null),
                     l.wait_us > 0 ? h("small", { class: "quiet" }, knownBy([l])) : null) },
      { key: "mean", head: "A call", wide: true, value: l => l.mean_us, cell: l => duration(l.mean_us) },
      { key: "max", head: "Longest", wide: true, value: l => l.max_us, cell: l => duration(l.max_us) },
      { key: "errors", head: "Errors", value: l => l.errors, cell: l => h("span", { class: l.errors ? "error" : "quiet" }, count(l.errors)) },
    ];
    showTable(this.rows, { caption: "Paths of this identity", columns, rows: this.all.filter(l => !this.hidden(l)), sort: "", resort: null,
                           key: l => this.nameOf(l) });
    this.none.hidden = this.all.length > 0;
    this.rows.hidden = this.all.length === 0;
  }
}
