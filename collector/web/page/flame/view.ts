// SPDX-License-Identifier: Apache-2.0
// The flame viewer: mountFlame puts it into an element, of a page or of a file.
import { type Child, fill, h } from "../dom";
import { amount, change, percent } from "../format";
import { FlameCanvas, type Shown, type Spot, type View } from "./canvas";
import { type Colours, coloursOf, familyOf } from "./colours";
import { Kind, type Metric, type Profile, type ProfileData, readProfile } from "./data";
import { type Look, placeOf, viewAt } from "./look";
import { FunctionTable } from "./table";
import { type Tree, covered, functionsOf, rowsOf, sandwich, scaleOf, vanished, weigh } from "./tree";

export interface FlameOptions {
  /** Without the title and the notes, where the page tells them. */
  bare?: boolean;
  /** What is chosen at first. */
  look?: Look;
  /** Somebody chose something else. step: back should lead to what was there before. */
  looked?(look: Look, step: boolean): void;
}

export interface Flame {
  /** Shows what an address asks for. */
  look(look: Look): void;
  /** Lets go of all that listens. The element's content stays. */
  destroy(): void;
}

/** Applications that the legend names. */
const LEGEND = 8;
/** What vanished, until somebody asks for all. */
const GONE = 8;

export function mountFlame(element: HTMLElement, data: ProfileData, options: FlameOptions = {}): Flame {
  return new Viewer(element, readProfile(data), options);
}

/** Title and notes, of which the first one stands alone until somebody asks for the others. */
export function flameHeading(title: string, notes: string[]): HTMLElement {
  return h("header", { class: "flame-heading" }, h("h1", {}, title),
    notes.length > 0 && h("details", { open: notes.length <= 3 }, h("summary", {}, notes[0]),
      ...notes.slice(1).map(note => h("p", {}, note))));
}

class Viewer implements Flame {
  private metric: Metric;
  private tree!: Tree;
  private colours: Colours;
  private up = false;
  private collapse = false;
  private match: Uint8Array | null = null;
  private middle = -1; // the function whose callers and callees are seen
  private past: View[] = [];
  private allGone = false;

  private readonly main: FlameCanvas;
  private readonly callers: FlameCanvas;
  private readonly callees: FlameCanvas;
  private readonly table: FunctionTable;
  private readonly search: HTMLInputElement = h("input", {
    type: "search", placeholder: "search functions", "aria-label": "Search functions: text or a regular expression",
    spellcheck: "false", oninput: () => this.seek(this.search.value),
  });
  private readonly found = h("span", { class: "flame-found", role: "status" });
  private readonly metrics: HTMLSelectElement;
  private readonly ways: HTMLElement[];
  private readonly fold = h("input", { type: "checkbox", onchange: () => {
    this.collapse = this.fold.checked;
    this.draw(this.main.view);
    this.looked(true);
  } });
  private readonly crumbs = h("nav", { class: "flame-crumbs", "aria-label": "Zoomed to" });
  private readonly told = h("p", { class: "flame-told", role: "status" });
  private readonly stage = h("div", { class: "flame-stage" });
  private readonly legend = h("p", { class: "flame-legend" });
  private readonly gone = h("div", { class: "flame-gone" });
  private readonly tip = h("div", { class: "flame-tip", "aria-hidden": true, hidden: true });
  private readonly element: HTMLElement;
  private readonly dark = matchMedia("(prefers-color-scheme: dark)");
  private readonly recolour = () => this.paint();
  private readonly keys = (e: KeyboardEvent) => this.key(e);
  private readonly scheme = new MutationObserver(this.recolour);

  constructor(host: HTMLElement, private readonly profile: Profile, private readonly options: FlameOptions) {
    const { metrics } = profile;
    this.metric = this.first();
    this.colours = coloursOf(profile.frames, this.isDark());
    const canvas = (name: string, up: boolean): FlameCanvas => {
      const made: FlameCanvas = new FlameCanvas(name, up, {
        over: (spot, event) => this.tell(made, spot, event),
        pick: spot => this.pick(made, spot),
        sandwich: node => this.around(this.treeOf(made).frame[node]!),
      });
      return made;
    };
    this.main = canvas("Flame graph. Arrow keys walk, Enter zooms, Escape goes back, s shows callers and callees, / searches.", false);
    this.callers = canvas("Callers", true);
    this.callees = canvas("Callees", false);
    this.table = new FunctionTable({ outline: frame => this.outline(frame), pick: frame => this.around(frame) });
    this.metrics = h("select", { onchange: () => this.measure(metrics[this.metrics.selectedIndex]!) },
      ...metrics.map(m => h("option", {}, m.label)));
    const way = (text: string, up: boolean): HTMLElement => h("button", { type: "button", onclick: () => {
      this.turn(up);
      this.looked(true);
    } }, text);
    this.ways = [way("icicle", false), way("flame", true)];
    this.element = h("section", { class: profile.compared ? "flame compared" : "flame" },
      !options.bare && flameHeading(profile.data.title, profile.data.notes), this.controls(), this.crumbs, this.told,
      h("div", { class: "flame-body" },
        h("div", { class: "flame-left" }, this.stage, this.legend, this.gone), this.table.element),
      this.tip);
    fill(host, this.element);
    this.dark.addEventListener("change", this.recolour);
    this.scheme.observe(document.documentElement, { attributeFilter: ["data-scheme"] });
    document.addEventListener("keydown", this.keys);
    this.look(options.look ?? {});
  }

  look(look: Look): void {
    const { metrics, frames } = this.profile;
    this.metric = metrics.find(m => m.name === look.metric) ?? this.first();
    this.metrics.selectedIndex = metrics.indexOf(this.metric);
    this.tree = weigh(this.profile, this.metric);
    this.fold.checked = this.collapse = look.fold === "1";
    this.turn(look.way === "flame");
    this.search.value = look.search ?? "";
    const root = this.tree.frame[0]!;
    this.middle = look.around ? frames.findIndex((f, i) => i !== root && f.name === look.around) : -1;
    const at = look.zoom ? viewAt(this.profile, this.tree, look.zoom) : null;
    this.past = at ? [this.viewOf(0)] : [];
    this.draw(at ?? this.viewOf(0));
  }

  destroy(): void {
    this.dark.removeEventListener("change", this.recolour);
    this.scheme.disconnect();
    document.removeEventListener("keydown", this.keys);
    for (const c of [this.main, this.callers, this.callees]) { c.destroy(); }
  }

  // -- what stands there ------------------------------------------------------------------------------------------------------------

  private controls(): HTMLElement {
    return h("div", { class: "flame-controls" },
      h("label", {}, "Metric ", this.metrics),
      h("div", { class: "flame-way", role: "group", "aria-label": "Direction" }, ...this.ways),
      h("label", {}, this.fold, " fold chains"),
      h("div", { class: "flame-search" }, this.search, this.found));
  }

  private turn(up: boolean): void {
    this.up = up;
    this.ways.forEach((b, i) => b.setAttribute("aria-pressed", String(up === (i === 1))));
    this.main.turn(up);
  }

  private first(): Metric {
    const { data, metrics } = this.profile;
    return metrics.find(m => m.name === data.metric) ?? metrics[0]!;
  }

  // Tells what is chosen now.
  private looked(step: boolean): void {
    this.options.looked?.({
      metric: this.metric === this.first() ? undefined : this.metric.name, way: this.up ? "flame" : undefined,
      fold: this.collapse ? "1" : undefined, search: this.search.value || undefined,
      around: this.middle >= 0 ? this.profile.frames[this.middle]!.name : undefined,
      zoom: placeOf(this.profile, this.tree, this.main.view),
    }, step);
  }

  private treeOf(canvas: FlameCanvas): Tree {
    return canvas === this.main ? this.tree : canvas === this.callers ? this.sides!.callers : this.sides!.callees;
  }

  private sides: { callers: Tree; callees: Tree } | null = null;

  private shown(tree: Tree, canvas: FlameCanvas): Shown {
    const { frames } = this.profile, isFunction = (f: number): boolean => frames[f]!.kind === Kind.Function;
    const rows = rowsOf(tree, this.collapse && canvas === this.main, isFunction);
    return { tree, rows, colours: this.colours, label: (node, short) => {
      const name = (of: number): string => {
        const f = frames[tree.frame[of]!]!;
        return short && f.module && f.name.startsWith(f.module) ? f.name.slice(f.module.length + 1) : f.name;
      };
      let text = name(node);
      const tail = rows.tail[node]!;
      if (tail !== node) {
        const path: string[] = [];
        for (let i = tail; i !== node; i = tree.parent[i]!) { path.unshift(name(i)); }
        text = [text, ...path].join(" › ");
      }
      return tree.beforeTotal && node > 0 ? `${this.changed(tree, node)}  ${text}` : text;
    } };
  }

  private changed(tree: Tree, node: number): string {
    const text = change(tree.total[node]!, tree.beforeTotal![node]! * scaleOf(tree));
    return text === "as before" ? "=" : text;
  }

  // By another metric. Where the zoomed stack weighs something there, it stays zoomed.
  private measure(metric: Metric): void {
    const path = this.tree.stack![this.main.view.node]!;
    this.metric = metric;
    this.tree = weigh(this.profile, metric);
    const node = Math.max(0, this.tree.stack!.indexOf(path));
    const kept = this.tree.total[node]! > 0 ? node : 0;
    this.past = kept > 0 ? [this.viewOf(0)] : [];
    this.draw(this.viewOf(kept));
    this.looked(true);
  }

  private viewOf(node: number): View {
    const t = this.tree;
    return { node, from: t.x[node]!, to: t.x[node]! + (t.total[node]! || 1) };
  }

  private draw(view: View): void {
    this.told.textContent = ""; // that was of another metric, or of another chain
    this.main.show(this.shown(this.tree, this.main), view);
    this.settle();
    this.find();
    this.drawCrumbs();
    this.drawLegend();
    this.drawGone();
  }

  // Puts the one graph or the two of callers and callees there.
  private settle(): void {
    if (this.middle < 0) {
      fill(this.stage, this.main.element);
      return;
    }
    this.sides = sandwich(this.tree, this.middle, this.profile.frames.length);
    const { callers, callees } = this.sides, name = this.profile.frames[this.middle]!.name;
    fill(this.stage, h("p", { class: "flame-side" }, "Callers of ", h("b", {}, name), ", the nearest at the bottom"), this.callers.element,
      h("p", { class: "flame-side" }, "What it calls"), this.callees.element);
    for (const [canvas, tree] of [[this.callers, callers], [this.callees, callees]] as const) {
      canvas.show(this.shown(tree, canvas), { node: 0, from: 0, to: tree.total[0]! || 1 });
    }
  }

  private get canvases(): FlameCanvas[] { return this.middle < 0 ? [this.main] : [this.callers, this.callees]; }

  private drawCrumbs(): void {
    const items: Child[] = [], { frames } = this.profile, { node, from, to } = this.main.view;
    const crumb = (text: string, go: (() => void) | null): HTMLElement =>
      go ? h("button", { type: "button", onclick: go, title: text }, text) : h("b", { title: text }, text);
    const path: number[] = [];
    for (let i = node; i > 0; i = this.tree.parent[i]!) { path.unshift(i); }
    const narrow = from > this.tree.x[node]! || to < this.tree.x[node]! + this.tree.total[node]!;
    items.push(crumb("all", node > 0 || narrow || this.middle >= 0 ? () => this.go(this.viewOf(0)) : null));
    for (const i of path) {
      items.push(" › ", crumb(frames[this.tree.frame[i]!]!.name, i !== node || narrow || this.middle >= 0 ? () => this.go(this.viewOf(i)) : null));
    }
    if (narrow) { items.push(" › ", h("b", {}, "narrow frames")); }
    if (this.middle >= 0) {
      items.push(" › ", h("b", {}, `callers and callees of ${frames[this.middle]!.name}`), " ",
        h("button", { type: "button", class: "flame-act", onclick: () => this.back() }, "back to the whole (Esc)"));
    } else if (node > 0) {
      items.push(" ", h("button", { type: "button", class: "flame-act", onclick: () => this.around(this.tree.frame[node]!) },
        "callers and callees"), h("button", { type: "button", class: "flame-act", onclick: () => this.back() }, "back (Esc)"));
    }
    fill(this.crumbs, ...items);
  }

  private drawLegend(): void {
    const { tree, profile } = this, total = tree.total[0]!;
    const swatch = (kind: string, colour: string | null, text: string): HTMLElement => {
      const box = h("span", { class: `flame-swatch ${kind}`, "aria-hidden": true });
      if (colour) { box.style.backgroundColor = colour; }
      return h("span", {}, box, text);
    };
    if (tree.beforeTotal) {
      fill(this.legend, swatch("", this.colours.change(0.6).fill as string, "more than before"),
        swatch("", this.colours.change(-0.6).fill as string, "less"), swatch("", this.colours.change(0).fill as string, "as before"),
        swatch("narrow", null, "narrow frames, zoom in"),
        h("span", {}, `now ${amount(total, this.metric.unit)}, before ${amount(tree.beforeTotal[0]!, this.metric.unit)} in ` +
          `${profile.data.before}: shown as heavy as each other`));
      return;
    }
    const weights = new Map<string, number>();
    let instead = false;
    for (let i = 1; i < tree.count; i++) {
      const f = profile.frames[tree.frame[i]!]!;
      if (f.kind === Kind.Function) { weights.set(familyOf(f), (weights.get(familyOf(f)) ?? 0) + tree.self[i]!); }
      instead ||= f.kind >= Kind.Waiting && f.kind <= Kind.Gc;
    }
    const list = [...weights].filter(([, w]) => w > 0).sort((a, b) => b[1] - a[1]);
    fill(this.legend,
      ...list.slice(0, LEGEND).map(([name, w]) => swatch("", this.colours.applications.get(name)!, `${name || "?"} ${percent(w, total)}`)),
      list.length > LEGEND && h("span", {}, `and ${list.length - LEGEND} more`),
      instead && swatch("instead", null, "waiting, asleep, gc"), swatch("narrow", null, "narrow frames, zoom in"));
  }

  private drawGone(): void {
    const t = this.tree, { frames } = this.profile, list = vanished(t);
    const seen = this.allGone ? list : list.slice(0, GONE);
    // the nearest first: the rest may not fit
    const callers = (node: number): string => {
      const names: string[] = [];
      for (let i = t.parent[node]!; i > 0; i = t.parent[i]!) { names.push(frames[t.frame[i]!]!.name); }
      return names.length > 0 ? `, called by ${names.join(" ‹ ")}` : "";
    };
    fill(this.gone, ...(list.length === 0 ? [] : [
      h("h2", {}, "What vanished"),
      h("ul", {}, ...seen.map(i => h("li", {}, h("b", {}, amount(t.beforeTotal![i]! * scaleOf(t), this.metric.unit)), " ",
        frames[t.frame[i]!]!.name, h("span", { title: callers(i) }, callers(i))))),
      seen.length < list.length && h("button", { type: "button", onclick: () => {
        this.allGone = true;
        this.drawGone();
      } }, `show all ${list.length.toLocaleString("en")}`)]));
  }

  private drawTable(): void {
    const t = this.tree;
    this.table.show({ frames: this.profile.frames, weights: functionsOf(t, this.profile.frames.length), unit: this.metric.unit,
      total: t.total[0]!, scale: t.beforeTotal ? scaleOf(t) : null, match: this.match });
  }

  // -- what is done -----------------------------------------------------------------------------------------------------------------

  private go(view: View, past = true): void {
    if (past) { this.past.push(this.main.view); }
    if (this.middle >= 0) {
      this.middle = -1;
      this.settle();
    }
    this.main.zoom(view);
    if (this.main.cursor >= 0) { this.main.cursor = view.node; }
    this.drawCrumbs();
    this.looked(true);
  }

  private pick(canvas: FlameCanvas, spot: Spot): void {
    const view = "count" in spot ? { node: spot.node, from: spot.from, to: spot.to } : canvas.whole(spot.node);
    if (canvas === this.main) {
      this.go(view);
    } else {
      canvas.zoom(view);
    }
  }

  /** Callers and callees of a function. */
  private around(frame: number): void {
    if (frame === this.tree.frame[0]) { return; }
    this.middle = frame;
    this.settle();
    this.mark();
    this.drawCrumbs();
    this.tell(this.callees, { node: 0 }, null);
    this.looked(true);
  }

  /** False: there is nothing to go back from. */
  private back(): boolean {
    if (this.middle >= 0) {
      this.middle = -1;
      this.settle();
      this.main.zoom(this.main.view);
      this.mark();
      this.drawCrumbs();
      this.looked(true);
    } else if (this.past.length > 0) {
      this.go(this.past.pop()!, false);
    } else if (this.search.value) {
      this.seek("");
    } else {
      return false;
    }
    return true;
  }

  private key(e: KeyboardEvent): void {
    const typing = e.target instanceof HTMLInputElement && e.target.type !== "checkbox";
    if (e.ctrlKey || e.metaKey || e.altKey || !this.element.isConnected) { return; }
    if (e.key === "Escape") {
      if (typing && this.search.value) {
        this.seek("");
      } else if (typing) {
        this.main.canvas.focus();
      } else if (!this.back()) {
        return; // what is around the viewer may go back
      }
    } else if ((e.key === "/" || e.key === "f") && !typing && !(e.target instanceof HTMLSelectElement)) {
      this.search.focus();
      this.search.select();
    } else {
      return;
    }
    e.preventDefault();
  }

  private seek(text: string): void {
    if (text !== this.search.value) { this.search.value = text; }
    this.find();
    this.looked(false);
  }

  private find(): void {
    const text = this.search.value, { frames } = this.profile;
    let pattern: RegExp | null = null;
    try {
      pattern = text ? new RegExp(text, "i") : null;
    } catch { // no regular expression: these very characters
      pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
    }
    this.match = pattern && Uint8Array.from(frames, (f, i) => i !== this.tree.frame[0] && pattern!.test(f.name) ? 1 : 0);
    this.found.textContent = this.match
      ? `${percent(covered(this.tree, this.match), this.tree.total[0]!)} of all, ${amount(this.match.reduce((n, m) => n + m, 0), "names")}` : "";
    this.mark();
    this.drawTable();
  }

  private mark(): void { for (const c of this.canvases) { c.mark(this.match); } }
  private outline(frame: number): void { for (const c of this.canvases) { c.outline(frame); } }

  // -- what is told -----------------------------------------------------------------------------------------------------------------

  private tell(canvas: FlameCanvas, spot: Spot | null, event: MouseEvent | null): void {
    const lines = spot ? this.linesOf(this.treeOf(canvas), spot) : [];
    this.told.textContent = lines.join(" · ");
    canvas.canvas.classList.toggle("flame-hand", spot !== null);
    this.tip.hidden = !event || !spot;
    if (!event || !spot) { return; }
    fill(this.tip, h("b", {}, lines[0]), ...lines.slice(1).map(line => h("div", {}, line)));
    const box = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 8))}px`;
    this.tip.style.top = `${event.clientY + 20 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 20}px`;
  }

  private linesOf(t: Tree, spot: Spot): string[] {
    const { frames, calls } = this.profile, { unit } = this.metric, whole = this.tree.total[0]!;
    if ("count" in spot) {
      return [`${spot.count.toLocaleString("en")} narrow frames side by side`,
        `${amount(spot.to - spot.from, unit)}, ${percent(spot.to - spot.from, whole)} of all`, "click zooms in on them"];
    }
    const i = spot.node, f = frames[t.frame[i]!]!, lines = [f.name];
    lines.push(`${amount(t.total[i]!, unit)}, ${percent(t.total[i]!, whole)} of all`);
    if (t.self[i]! !== t.total[i]!) { lines.push(`self ${amount(t.self[i]!, unit)}`); }
    if (calls && t.stack && unit !== "calls" && calls[t.stack[i]!]! > 0) { lines.push(amount(calls[t.stack[i]!]!, "calls")); }
    if (t.beforeTotal) {
      const before = t.beforeTotal[i]! * scaleOf(t);
      lines.push(`before ${amount(before, unit)} (${amount(t.beforeTotal[i]!, unit)} as measured): ${change(t.total[i]!, before)}`);
    }
    if (f.application) { lines.push(`application ${f.application}`); }
    return lines;
  }

  // -- colours ----------------------------------------------------------------------------------------------------------------------

  private isDark(): boolean {
    const asked = document.documentElement.dataset["scheme"];
    return asked ? asked === "dark" : this.dark.matches;
  }

  private paint(): void {
    this.colours = coloursOf(this.profile.frames, this.isDark());
    for (const c of [this.main, this.callers, this.callees]) { c.recolour(this.colours); }
    this.drawLegend();
  }
}
