// SPDX-License-Identifier: Apache-2.0
// Draws a tree on a canvas as high as what it scrolls in, and moves over it. Frames narrower than a pixel are drawn as one, hatched, with
// their neighbours; a zoom brings them back. What is drawn is looked up: a binary search in each row that is seen.
import { h } from "../dom";
import type { Colours } from "./colours";
import { type Rows, type Tree, scaleOf } from "./tree";

export const ROW = 20;
const NARROWEST = 1, LABEL = 28, PAD = 4, MOVES_MS = 140;

/** What the pointer or the keys are on: a node, or frames that are drawn as one: from x on, to an x. */
export type Spot = { node: number } | { node: number; from: number; to: number; count: number };

/** What is seen: a node, and what of it: x from and to. */
export interface View { node: number; from: number; to: number }

export interface Shown {
  tree: Tree;
  rows: Rows;
  /** What a node is called; short: without its module. */
  label(node: number, short: boolean): string;
  colours: Colours;
}

export interface Listener {
  over(spot: Spot | null, event: MouseEvent | null): void;
  pick(spot: Spot): void;
  sandwich(node: number): void;
}

interface Run { y: number; left: number; right: number; first: number; last: number }

export class FlameCanvas {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  view: View = { node: 0, from: 0, to: 1 };
  cursor = -1;
  private readonly room = h("div", { class: "flame-room" });
  private readonly g: CanvasRenderingContext2D;
  private shown: Shown | null = null;
  private match: Uint8Array | null = null;
  private outlined = -1;
  private runs: Run[] = [];
  private widths = new Map<string, number>();
  private drawing = 0;
  private moving: { from: View; start: number } | null = null;
  private font = "";
  private width = 0;
  private height = 0;
  private readonly watch: ResizeObserver;

  /** up: roots at the bottom. */
  constructor(name: string, private up: boolean, private listener: Listener) {
    this.canvas = h("canvas", {
      tabindex: 0, role: "application", "aria-label": name, "aria-roledescription": "flame graph",
      onmousemove: (e: MouseEvent) => listener.over(this.at(e), e),
      onmouseleave: () => listener.over(null, null),
      onclick: (e: MouseEvent) => this.click(e),
      onkeydown: (e: KeyboardEvent) => this.key(e),
      onfocus: () => this.draw(),
      onblur: () => this.draw(),
    });
    this.g = this.canvas.getContext("2d", { alpha: false })!;
    this.element = h("div", { class: "flame-scroll", onscroll: () => this.draw() }, this.room);
    this.room.append(this.canvas);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.element);
  }

  destroy(): void {
    this.watch.disconnect();
    cancelAnimationFrame(this.drawing);
  }

  show(shown: Shown, view: View): void {
    this.shown = shown;
    this.view = view;
    this.moving = null;
    this.cursor = -1;
    this.resize();
    if (this.up) { this.element.scrollTop = this.element.scrollHeight; }
  }

  recolour(colours: Colours): void {
    if (this.shown) { this.shown.colours = colours; }
    this.draw();
  }

  turn(up: boolean): void {
    this.up = up;
    this.resize();
    this.element.scrollTop = up ? this.element.scrollHeight : 0;
  }

  /** Marks frames; null: none. */
  mark(match: Uint8Array | null): void {
    this.match = match;
    this.draw();
  }

  /** Outlines all that are of a frame; -1: none. */
  outline(frame: number): void {
    this.outlined = frame;
    this.draw();
  }

  zoom(view: View): void {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.moving = still ? null : { from: this.seen(performance.now()), start: performance.now() };
    this.view = view;
    this.bringIn(view.node);
    this.draw();
  }

  whole(node: number): View {
    const t = this.shown!.tree;
    return { node, from: t.x[node]!, to: t.x[node]! + t.total[node]! };
  }

  draw(): void {
    this.drawing ||= requestAnimationFrame(now => {
      this.drawing = 0;
      this.paint(now);
    });
  }

  // -- places -----------------------------------------------------------------------------------------------------------------------

  private resize(): void {
    if (!this.shown) { return; }
    this.width = this.element.clientWidth;
    this.height = this.element.clientHeight;
    this.font = `12px ${getComputedStyle(this.canvas).fontFamily}`;
    const dots = window.devicePixelRatio || 1;
    this.room.style.height = `${Math.max(this.tall(), this.height)}px`;
    this.width = this.element.clientWidth; // a bar may have come
    this.canvas.width = Math.round(this.width * dots);
    this.canvas.height = Math.round(this.height * dots);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.draw();
  }

  private tall(): number { return this.shown!.rows.count * ROW; }

  // px below the upper edge of what scrolls
  private top(level: number): number {
    return this.up ? Math.max(this.tall(), this.height) - (level + 1) * ROW : level * ROW;
  }

  private levelAt(y: number): number {
    const below = y + this.element.scrollTop;
    return Math.floor((this.up ? Math.max(this.tall(), this.height) - below : below) / ROW);
  }

  // The first place in a row whose node ends behind x.
  private first(level: number, x: number): number {
    const { tree: t, rows } = this.shown!;
    let low = rows.start[level]!, high = rows.start[level + 1]!;
    while (low < high) {
      const middle = (low + high) >>> 1, i = rows.nodes[middle]!;
      if (t.x[i]! + t.total[i]! > x) { high = middle; } else { low = middle + 1; }
    }
    return low;
  }

  private bringIn(node: number): void {
    const top = this.top(this.shown!.rows.level[node]!), scroll = this.element;
    if (top < scroll.scrollTop || top + ROW > scroll.scrollTop + this.height) {
      scroll.scrollTop = top - this.height / 3;
    }
  }

  // What is seen at a moment.
  private seen(now: number): View {
    if (!this.moving) { return this.view; }
    const part = Math.min(1, Math.max(0, (now - this.moving.start) / MOVES_MS)), ease = 1 - (1 - part) ** 3;
    const { from } = this.moving, to = this.view;
    if (part === 1) { this.moving = null; }
    return { node: to.node, from: from.from + (to.from - from.from) * ease, to: from.to + (to.to - from.to) * ease };
  }

  // -- drawing ----------------------------------------------------------------------------------------------------------------------

  private paint(now: number): void {
    if (!this.shown || this.width === 0) { return; }
    const { rows, colours } = this.shown, g = this.g, dots = this.canvas.width / this.width;
    const view = this.seen(now);
    g.setTransform(dots, 0, 0, dots, 0, 0);
    g.fillStyle = colours.background;
    g.fillRect(0, 0, this.width, this.height);
    g.font = this.font;
    g.textBaseline = "middle";
    this.runs = [];
    const a = this.levelAt(0), b = this.levelAt(this.height - 1);
    for (let level = Math.max(0, Math.min(a, b)); level <= Math.min(rows.count - 1, Math.max(a, b)); level++) {
      this.row(level, view);
    }
    if (this.moving) { this.draw(); }
  }

  private row(level: number, view: View): void {
    const { tree: t, rows, colours } = this.shown!, g = this.g;
    const y = this.top(level) - this.element.scrollTop, high = ROW - 1, end = rows.start[level + 1]!;
    const scale = this.width / (view.to - view.from);
    const below = level < rows.level[view.node]!, looked = this.match !== null || this.outlined >= 0;
    const { nodes } = rows, { x, total } = t;
    g.globalAlpha = below ? 0.6 : 1;
    for (let k = this.first(level, view.from); k < end;) {
      const i = nodes[k]!, left = (x[i]! - view.from) * scale, wide = total[i]! * scale;
      if (left >= this.width) { break; }
      if (wide >= NARROWEST) {
        this.box(i, Math.max(0, left), Math.min(this.width, left + wide), y, high);
        k++;
        continue;
      }
      // what is too narrow, as far as there is no gap
      const run: Run = { y, left: Math.max(0, left), right: left + wide, first: k, last: k };
      let marked = looked && this.isMarked(i), outlined = looked && t.frame[i] === this.outlined;
      for (k++; k < end; k++) {
        const j = nodes[k]!, next = (x[j]! - view.from) * scale, w = total[j]! * scale;
        if (w >= NARROWEST || next > run.right + NARROWEST / 2 || next >= this.width) { break; }
        run.right = next + w;
        run.last = k;
        if (looked) {
          marked ||= this.isMarked(j);
          outlined ||= t.frame[j] === this.outlined;
        }
      }
      run.right = Math.max(run.right, run.left + NARROWEST);
      this.runs.push(run);
      g.fillStyle = marked ? colours.mark.fill : run.right - run.left < 3 ? colours.speck : colours.narrow;
      g.fillRect(run.left, y, run.right - run.left, high);
      if (outlined) { this.edge(run.left, run.right, y, high, 2); }
    }
    g.globalAlpha = 1;
  }

  private isMarked(node: number): boolean {
    if (!this.match) { return false; }
    const { tree: t, rows } = this.shown!;
    for (let i = rows.tail[node]!; ; i = t.parent[i]!) { // a chain has the names of all its frames
      if (this.match[t.frame[i]!]) { return true; }
      if (i === node) { return false; }
    }
  }

  private box(i: number, left: number, right: number, y: number, high: number): void {
    const { tree: t, colours, rows } = this.shown!, g = this.g, wide = right - left;
    let paint = colours.frames[t.frame[i]!]!;
    if (t.beforeTotal) {
      const after = t.total[i]!, before = t.beforeTotal[i]! * scaleOf(t);
      paint = i === 0 ? colours.change(0) : colours.change((after - before) / (after + before));
    }
    if (this.isMarked(i)) { paint = colours.mark; }
    g.fillStyle = paint.fill;
    g.fillRect(left, y, wide > 3 ? wide - 1 : wide > 1.5 ? wide - 0.5 : wide, high);
    if (wide >= LABEL) {
      const text = this.fitting(i, wide - 2 * PAD);
      g.fillStyle = paint.ink;
      if (text) { g.fillText(text, left + PAD, y + high / 2 + 0.5); }
    }
    if (this.outlined >= 0 && (t.frame[i] === this.outlined || (rows.tail[i] !== i && t.frame[rows.tail[i]!] === this.outlined))) {
      this.edge(left, right, y, high, 2);
    }
    if (i === this.cursor && document.activeElement === this.canvas) { this.edge(left, right, y, high, 3); }
  }

  private edge(left: number, right: number, y: number, high: number, thick: number): void {
    const g = this.g;
    g.strokeStyle = this.shown!.colours.text;
    g.lineWidth = thick;
    g.strokeRect(left + thick / 2, y + thick / 2, Math.max(right - left - thick - 1, 1), high - thick);
  }

  private measure(text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      width = this.g.measureText(text).width;
      if (this.widths.size > 20000) { this.widths.clear(); }
      this.widths.set(text, width);
    }
    return width;
  }

  // The name or, where that is too long, the name without its module, and of that as much as there is room for.
  private fitting(node: number, room: number): string {
    const whole = this.shown!.label(node, false);
    return this.measure(whole) <= room ? whole : this.shorten(this.shown!.label(node, true), room);
  }

  private shorten(text: string, room: number): string {
    const width = this.measure(text);
    if (width <= room) { return text; }
    let fit = Math.floor(text.length * room / width) - 1; // so exactly while nothing moves
    if (fit <= 1) { return ""; }
    const letters = Array.from(text.slice(0, fit + 2));
    while (!this.moving && fit > 1 && this.g.measureText(letters.slice(0, fit).join("") + "…").width > room) { fit--; }
    return fit > 1 ? letters.slice(0, fit).join("") + "…" : "";
  }

  // -- the pointer and the keys -----------------------------------------------------------------------------------------------------

  /** What lies there: of the canvas, px. */
  spot(px: number, py: number): Spot | null {
    if (!this.shown) { return null; }
    const { tree: t, rows } = this.shown, level = this.levelAt(py);
    if (level < 0 || level >= rows.count) { return null; }
    const run = this.runs.find(r => py >= r.y && py < r.y + ROW && px >= r.left - 0.5 && px < r.right + 0.5);
    if (run) { return this.spotOf(run); }
    const x = this.view.from + px * (this.view.to - this.view.from) / this.width, k = this.first(level, x);
    const i = rows.nodes[k];
    return k < rows.start[level + 1]! && i !== undefined && t.x[i]! <= x ? { node: i } : null;
  }

  private spotOf(run: Run): Spot {
    const { tree: t, rows } = this.shown!, first = rows.nodes[run.first]!, last = rows.nodes[run.last]!;
    if (run.first === run.last) { return { node: first }; }
    let node = t.parent[first]!;
    while (t.end[node]! <= last) { node = t.parent[node]!; }
    return { node, from: t.x[first]!, to: t.x[last]! + t.total[last]!, count: run.last - run.first + 1 };
  }

  private at(e: MouseEvent): Spot | null {
    const box = this.canvas.getBoundingClientRect();
    return this.spot(e.clientX - box.left, e.clientY - box.top);
  }

  private click(e: MouseEvent): void {
    const spot = this.at(e);
    if (!spot) { return; }
    this.cursor = -1; // that is of the keys
    if (e.shiftKey && !("count" in spot)) { this.listener.sandwich(spot.node); } else { this.listener.pick(spot); }
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey || !this.shown) { return; }
    const to = this.step(e.key);
    if (to >= 0) {
      this.cursor = to;
      this.bringIn(to);
      this.draw();
      this.listener.over({ node: to }, null);
    } else if (e.key === "Enter" || e.key === " ") {
      if (this.cursor >= 0) { this.listener.pick({ node: this.cursor }); }
    } else if (e.key === "s" && this.cursor >= 0) {
      this.listener.sandwich(this.cursor);
    } else {
      return;
    }
    e.preventDefault();
  }

  // Where a key leads to; -1: nowhere.
  private step(key: string): number {
    const { tree: t, rows } = this.shown!, at = this.cursor < 0 ? this.view.node : this.cursor, level = rows.level[at]!;
    if (!key.startsWith("Arrow")) { return -1; }
    if (this.cursor < 0) { return at; }
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const k = this.first(level, t.x[at]!) + (key === "ArrowLeft" ? -1 : 1);
      const next = k >= rows.start[level]! && k < rows.start[level + 1]! ? rows.nodes[k]! : at;
      return t.x[next]! + t.total[next]! > this.view.from && t.x[next]! < this.view.to ? next : at;
    }
    if ((key === "ArrowUp") === this.up) { // to the heaviest above it
      let best = at;
      for (let k = level + 1 < rows.count ? this.first(level + 1, t.x[at]!) : 0; level + 1 < rows.count && k < rows.start[level + 2]!; k++) {
        const i = rows.nodes[k]!;
        if (i >= t.end[at]!) { break; }
        if (best === at || t.total[i]! > t.total[best]!) { best = i; }
      }
      return best;
    }
    for (let i = at; i > 0;) { // to the one below it that is drawn
      i = t.parent[i]!;
      if (rows.level[i]! < level) {
        while (i > 0 && rows.level[t.parent[i]!] === rows.level[i]) { i = t.parent[i]!; }
        return i;
      }
    }
    return at;
  }
}
