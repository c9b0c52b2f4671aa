// SPDX-License-Identifier: Apache-2.0
// A heat map of samples on a canvas: seconds side by side, cut into rows. A drag, or keys, choose the part of the profile that is drawn
// below, and with shift the one that it is compared with. In a file that has no parts to draw they choose one to be named.
import type { Heat } from "./api";
import { hatching, mix, variable } from "./colours";
import { fill, h } from "./dom";
import { amount } from "./format";

/** ms since the profile's begin. */
export type Part = [number, number];
export type Parts = { part: Part | null; other: Part | null };

const ROW = 3, AXIS = 20, LEFT = 48, WIDEST = 24, LEVELS = 12, LEAST = 0.2, SETTLED_MS = 300;
const STATES: Record<string, string> = { n: "no profile: nothing is kept of that time", l: "too busy: the node had no time for the sampler",
                                         h: "held back: the sampler kept to its budget", "-": "not looked at: none was due" };

const HINTS: Record<string, string> = { all: "Drawn below: all of it. A drag chooses a part, with shift one to compare it with.",
                                        none: "A drag chooses a part, with shift one to compare it with.", never: "A drag chooses a part." };

const seconds = (ms: number): string => `${Number((ms / 1000).toFixed(3))} s`;

/** A part in words: "1.2 s to 3.4 s". */
export function partName(part: Part): string {
  return `${seconds(part[0])} to ${seconds(part[1])}`;
}

export class HeatMap {
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly legend = h("p", { class: "legend" });
  private readonly told = h("p", { class: "heat-told", role: "status" });
  private readonly area = h("div", { class: "heat", tabindex: "0", role: "group",
    "aria-label": "Heat map. Left and right move the chosen part by a column, up and down by a cell; with shift they make it longer " +
      "or shorter, escape lets go." }, this.canvas);
  private readonly heading = h("h2", {});
  readonly element = h("section", { class: "heat-map" }, this.heading, this.area, this.told, this.legend);
  private heat: Heat | null = null;
  private parts: Parts = { part: null, other: null };
  private from = -1;          // the cell where a drag began; -1: none
  private second = false;     // it is for what is compared with
  private pointer = -1;       // the cell under it
  private later: ReturnType<typeof setTimeout> | undefined;
  private readonly sizes = new ResizeObserver(() => this.draw());
  private readonly dark = matchMedia("(prefers-color-scheme: dark)");
  private readonly redraw = (): void => this.draw();
  private readonly scheme = new MutationObserver(this.redraw);

  /** chosen: somebody chose other parts. without: what is drawn below when none is; never: nothing is, and parts are but named. */
  /** clock: says a time since the map's begin; usually in seconds. */
  constructor(private readonly chosen: (parts: Parts) => void, private readonly without: "all" | "none" | "never" = "all", private readonly clock?: (ms: number) => string) {
    this.sizes.observe(this.area);
    this.dark.addEventListener("change", this.redraw);
    this.scheme.observe(document.documentElement, { attributeFilter: ["data-scheme"] });
    this.area.addEventListener("pointerdown", e => this.down(e));
    this.area.addEventListener("pointermove", e => this.move(e));
    this.area.addEventListener("pointerup", () => this.up());
    this.area.addEventListener("pointercancel", () => { this.from = -1; });
    this.area.addEventListener("pointerleave", () => this.over(-1));
    this.area.addEventListener("keydown", e => this.key(e));
  }

  destroy(): void {
    clearTimeout(this.later);
    this.sizes.disconnect();
    this.scheme.disconnect();
    this.dark.removeEventListener("change", this.redraw);
  }

  show(heat: Heat, parts: Parts): void {
    this.heat = heat;
    if (this.later === undefined && this.from < 0) { this.parts = parts; } // else somebody is choosing others
    fill(this.heading, `When: ${heat.metric.replace(/_/g, " ")}`);
    this.draw();
    this.over(-1);
  }

  // -- where things are ---------------------------------------------------------------------------------------------------------------

  private name(part: Part): string {
    return this.clock ? `${this.clock(part[0])} to ${this.clock(part[1])}` : partName(part);
  }
  private get cells(): number { return this.heat ? this.heat.columns * this.heat.rows : 0; }
  private width(): number { return Math.min(WIDEST, (this.area.clientWidth - LEFT) / Math.max(1, this.heat?.columns ?? 1)); }
  private begin(cell: number): number {
    const heat = this.heat!;
    return heat.from_ms + Math.floor(cell / heat.rows) * heat.column_ms + cell % heat.rows * heat.cell_ms;
  }
  private partOf(a: number, b: number): Part {
    const part: Part = [this.begin(Math.min(a, b)), this.begin(Math.max(a, b)) + this.heat!.cell_ms];
    return [Math.round(part[0]), Math.max(Math.round(part[0]) + 1, Math.min(Math.round(part[1]), Math.ceil(this.heat!.length_ms)))];
  }
  // The first cell of a part, and the one behind its last.
  private cellsOf(part: Part): [number, number] {
    const heat = this.heat!, cell = (ms: number): number => Math.min(this.cells, Math.max(0, (ms - heat.from_ms) / heat.cell_ms));
    const first = Math.floor(cell(part[0]) + 1e-6);
    return [first, Math.max(first + 1, Math.ceil(cell(part[1]) - 1e-6))];
  }
  private cellAt(e: PointerEvent): number {
    const heat = this.heat!, box = this.area.getBoundingClientRect();
    const within = (x: number, most: number): number => Math.max(0, Math.min(most - 1, x));
    const column = within(Math.floor((e.clientX - box.left - LEFT) / this.width()), heat.columns);
    return column * heat.rows + within(Math.floor((heat.rows * ROW - (e.clientY - box.top)) / ROW), heat.rows);
  }

  // -- what is done -------------------------------------------------------------------------------------------------------------------

  private down(e: PointerEvent): void {
    if (!this.heat || e.button !== 0 || this.cells === 0) { return; }
    this.area.setPointerCapture(e.pointerId);
    this.second = e.shiftKey && this.without !== "never";
    this.from = this.cellAt(e);
    e.preventDefault();
    this.area.focus({ preventScroll: true });
  }

  private move(e: PointerEvent): void {
    if (!this.heat || this.cells === 0) { return; }
    const at = this.cellAt(e);
    if (this.from >= 0) { this.choose(this.partOf(this.from, at), this.second); }
    this.over(at);
  }

  private up(): void {
    if (this.from < 0) { return; }
    if (this.pointer >= 0) { this.choose(this.partOf(this.from, this.pointer), this.second); }
    this.from = -1;
    this.chosen(this.parts);
  }

  private choose(part: Part | null, second: boolean): void {
    this.parts = second ? { ...this.parts, other: part } : { ...this.parts, part };
    this.draw();
  }

  private key(e: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 0, ArrowDown: 0 };
    const { part, other } = this.parts;
    if (!this.heat || e.ctrlKey || e.metaKey || e.altKey) { return; }
    if (e.key === "Escape" && (part || other)) {
      this.choose(null, other !== null);
    } else if (e.key in steps && this.cells > 0) {
      const by = e.key === "ArrowUp" ? 1 : e.key === "ArrowDown" ? -1 : steps[e.key]! * this.heat.rows;
      const [first, end] = part ? this.cellsOf(part) : [0, this.heat.rows];
      const most = this.cells, step = !part ? 0 : e.shiftKey ? 0 : Math.max(-first, Math.min(by, most - end));
      const until = part && e.shiftKey ? Math.max(first + 1, Math.min(end + by, most)) : end + step;
      this.choose(this.partOf(first + step, until - 1), false);
      this.tell([this.name(this.parts.part!), ""]);
    } else {
      return;
    }
    e.preventDefault();
    e.stopPropagation(); // the viewer and the page know these keys, too
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      this.later = undefined;
      this.chosen(this.parts);
    }, SETTLED_MS);
  }

  // -- what is told -------------------------------------------------------------------------------------------------------------------

  private over(cell: number): void {
    this.pointer = cell;
    const heat = this.heat;
    if (!heat) { return; }
    if (cell < 0) {
      const { part, other } = this.parts;
      this.tell([part ? `${this.without === "never" ? "Chosen" : "Drawn below"}: ${this.name(part)}` : HINTS[this.without]!,
                 other ? `compared with ${this.name(other)}` : ""]);
      return;
    }
    const state = heat.states[Math.floor(cell / heat.rows)]![cell % heat.rows]!, silent = heat.unanswered[cell]!;
    const value = amount(heat.values[cell]!, heat.unit), looks = amount(heat.looks[cell]!, "samples");
    const drag = this.from >= 0 ? this.second ? this.parts.other : this.parts.part : null;
    this.tell([this.name(drag ?? this.partOf(cell, cell)),
      state === "s" ? (heat.unit === "samples" ? value : `${value}, ${looks}`)
        : state === "i" ? `idle: ${looks}, ${heat.metric === "active" ? "and no process had run" : "and none of it"}` : STATES[state] ?? "",
      silent > 0 ? `${silent} not answered` : ""]);
  }

  private tell(lines: string[]): void {
    this.told.textContent = lines.filter(Boolean).join(" · ");
  }

  // -- what is drawn ------------------------------------------------------------------------------------------------------------------

  private colour(value: number): string {
    const most = Math.max(1, this.heat!.highest), level = Math.min(LEVELS - 1, Math.floor(Math.sqrt(value / most) * LEVELS)) / (LEVELS - 1);
    return mix(variable("--heat-none"), variable("--heat-most"), LEAST + (1 - LEAST) * level);
  }

  private draw(): void {
    const heat = this.heat, c = this.canvas.getContext("2d");
    if (!heat || !c || this.area.clientWidth === 0) { return; }
    const width = this.width(), high = heat.rows * ROW, scale = devicePixelRatio || 1;
    this.area.style.height = `${high + AXIS}px`;
    this.canvas.width = Math.round(this.area.clientWidth * scale);
    this.canvas.height = Math.round((high + AXIS) * scale);
    c.setTransform(scale, 0, 0, scale, 0, 0);
    const late = hatching(c, variable("--untrusted"), variable("--raised")), held = dots(c, variable("--hue-7"), variable("--raised"));
    const colours = new Map<number, string>();
    for (let cell = 0; cell < this.cells; cell++) {
      const column = Math.floor(cell / heat.rows), row = cell % heat.rows, state = heat.states[column]![row]!;
      if (state === "-") { continue; }
      const value = heat.values[cell]!;
      if (state === "s" && !colours.has(value)) { colours.set(value, this.colour(value)); }
      c.fillStyle = state === "n" ? variable("--line") : state === "s" ? colours.get(value)! : state === "i" ? variable("--raised") : state === "l" ? late : held;
      c.fillRect(LEFT + column * width, high - (row + 1) * ROW, width, ROW);
    }
    this.axes(c, width, high);
    for (const [part, colour] of [[this.parts.other, "--mark"], [this.parts.part, "--text"]] as const) {
      if (part) { this.outline(c, this.cellsOf(part), width, high, variable(colour)); }
    }
    this.drawLegend();
  }

  private axes(c: CanvasRenderingContext2D, width: number, high: number): void {
    const heat = this.heat!, steps = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200];
    c.font = `12px ${variable("--font")}`;
    c.fillStyle = c.strokeStyle = variable("--quiet");
    c.textBaseline = "middle";
    c.textAlign = "right";
    c.fillText("0", LEFT - 4, high - 6);
    c.fillText(heat.column_ms > 1000 ? seconds(heat.column_ms / 2) : "500 ms", LEFT - 4, high / 2);
    const step = steps.find(s => s * 1000 % heat.column_ms === 0 && s * 1000 / heat.column_ms * width >= 56) ?? 86400;
    c.textBaseline = "top";
    c.textAlign = "left";
    for (let column = 0; column < heat.columns; column++) {
      const at = (heat.from_ms + column * heat.column_ms) / 1000;
      if (at % step === 0) {
        c.fillRect(LEFT + column * width, high, 1, 4);
        c.fillText(this.clock ? this.clock(at * 1000) : `${at} s`, LEFT + column * width + 3, high + 4);
      }
    }
  }

  // Along the cells of a part, column for column from the bottom up.
  private outline(c: CanvasRenderingContext2D, [first, end]: [number, number], width: number, high: number, colour: string): void {
    const { rows } = this.heat!;
    c.save();
    c.beginPath();
    for (let cell = first; cell < end;) {
      const column = Math.floor(cell / rows), until = Math.min(end, (column + 1) * rows);
      c.rect(LEFT + column * width, high - (until - column * rows) * ROW, width, (until - cell) * ROW);
      cell = until;
    }
    c.globalAlpha = 0.3;
    c.fillStyle = colour;
    c.fill();
    c.globalAlpha = 1;
    c.strokeStyle = colour;
    c.lineWidth = 1;
    c.stroke();
    c.restore();
  }

  private drawLegend(): void {
    const heat = this.heat!, has = (letter: string): boolean => heat.states.some(s => s.includes(letter));
    const item = (kind: string, text: string): HTMLElement => h("span", { class: "item" }, h("i", { class: `swatch ${kind}` }), text);
    fill(this.legend,
      has("s") && item("hot", `${amount(heat.lowest, heat.unit)} to ${amount(heat.highest, heat.unit)}${heat.adds_up ? "" : " at most"} in ` +
        `${heat.cell_ms} ms`),
      has("i") && item("idle", "idle"), has("l") && item("late", "node too busy for the sampler"),
      has("h") && item("held", "sampler held itself back"), has("n") && item("unkept", "no profile"), this.parts.part && item("chosen", this.without === "never" ? "chosen" : "drawn below"),
      this.parts.other && item("other", "compared with"));
  }
}

// Dots, as gaps have that the sampler left on purpose.
function dots(context: CanvasRenderingContext2D, dot: string, ground: string): CanvasPattern {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const c = tile.getContext("2d") as CanvasRenderingContext2D;
  c.fillStyle = ground;
  c.fillRect(0, 0, 6, 6);
  c.fillStyle = dot;
  c.fillRect(1, 1, 2, 2);
  c.fillRect(4, 4, 2, 2);
  return context.createPattern(tile, "repeat") as CanvasPattern;
}
