// SPDX-License-Identifier: Apache-2.0
// Charts over time, on canvases: all charts of a view share one axis, so cursors move together and a drag on any of them zooms all.
import { variable, hatching } from "./colours";
import { type Child, fill, h } from "./dom";
import { clock, day, stretch, ticks } from "./times";

/** The time that the charts of a view show: seconds since 1970. */
export class TimeAxis {
  from = 0;
  until = 1;
  start = 0;  // of the first step
  step = 1;
  steps = 0;
  cursor: number | null = null;              // a step
  selection: [number, number] | null = null; // seconds
  private readonly changed: (() => void)[] = [];

  /** zoom: what to do with a stretch that somebody chose. */
  constructor(readonly zoom: (from: number, until: number) => void) {}

  onChange(redraw: () => void): void { this.changed.push(redraw); }

  point(at: number | null): void {
    const step = at === null ? null : Math.floor((at - this.start) / this.step);
    this.cursor = step === null || this.steps === 0 ? null : Math.max(0, Math.min(this.steps - 1, step));
    this.changed.forEach(f => f());
  }

  select(selection: [number, number] | null): void {
    this.selection = selection;
    this.changed.forEach(f => f());
  }

  /** Zooms to what is selected, in whole steps. */
  take(): void {
    if (this.selection) {
      const [a, b] = this.selection;
      const from = this.start + Math.floor((Math.min(a, b) - this.start) / this.step) * this.step;
      const until = this.start + Math.ceil((Math.max(a, b) - this.start) / this.step) * this.step;
      this.select(null);
      if (until - from >= 2) { this.zoom(from, until); }
    }
  }

  at(step: number): number { return this.start + step * this.step; }
}

/** What draws on a chart: where a time and a value lie, in px. */
export type Pen = { c: CanvasRenderingContext2D; x(at: number): number; y(value: number): number; left: number; right: number;
                    top: number; bottom: number };
export type Picture = {
  lines: { value: number; text: string }[];  // of the axis of values
  share(value: number): number;              // how high a value lies: 0 below, 1 above
  draw(pen: Pen): void;
  legend(step: number | null): Child[];      // beside the title: what the cursor is at, or null: of all of it
  say(step: number): string;                 // the same in words, for who cannot see it
};

/** Something on the time line with words: shown where it is pointed at or has the focus, and a link. */
export type Pin = { at: number; what: string; title: string; href: string };

const LEFT = 56, RIGHT = 8, TOP = 16, BOTTOM = 20;

export class Plot {
  readonly element: HTMLElement;
  private readonly under = h("canvas", { "aria-hidden": "true" });
  private readonly over = h("canvas", { "aria-hidden": "true", class: "over" });
  private readonly area: HTMLElement;
  private readonly legend = h("div", { class: "legend" });
  private readonly spoken = h("p", { class: "spoken", "aria-live": "polite" });
  private readonly pinned = h("div", { class: "pins" });
  private pins: Pin[] = [];
  private picture: Picture | null = null;
  private dragged: number | null = null;

  constructor(title: string, private readonly axis: TimeAxis, size: string) {
    this.area = h("div", { class: `plot ${size}`, tabindex: "0", role: "group",
      "aria-label": `${title}. Left and right move along it, with shift they select, enter zooms, escape lets go.` },
      this.under, this.over, this.pinned);
    this.element = h("section", { class: "chart" }, h("header", {}, h("h2", {}, title), this.legend), this.area, this.spoken);
    axis.onChange(() => this.drawOver());
    new ResizeObserver(() => this.draw()).observe(this.area);
    this.listen();
  }

  show(picture: Picture): void {
    this.picture = picture;
    this.draw();
  }

  showPins(pins: Pin[]): void {
    this.pins = pins;
    this.place();
  }

  private place(): void {
    const { from, until } = this.axis, width = this.area.clientWidth - LEFT - RIGHT;
    fill(this.pinned, ...this.pins.filter(p => p.at >= from && p.at <= until).map(p => {
      const share = (p.at - from) / (until - from);
      const link = h("a", { class: `pin ${share < 0.2 ? "left" : share > 0.8 ? "right" : ""}`, href: p.href, "aria-label": `${p.what}, ${p.title}` },
                     h("span", { class: "tip", "aria-hidden": "true" }, p.title));
      link.style.left = `${LEFT + share * width}px`;
      for (const kind of ["pointerdown", "keydown"]) { link.addEventListener(kind, event => event.stopPropagation()); }
      return link;
    }));
  }

  // -- pointer and keys ---------------------------------------------------------------------------

  private timeOf(event: PointerEvent): number {
    const box = this.area.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / Math.max(1, box.width - LEFT - RIGHT);
    return this.axis.from + Math.max(0, Math.min(1, share)) * (this.axis.until - this.axis.from);
  }

  private listen(): void {
    const area = this.area, axis = this.axis;
    area.addEventListener("pointermove", event => {
      const at = this.timeOf(event);
      if (this.dragged !== null) { axis.select([this.dragged, at]); }
      axis.point(at);
    });
    area.addEventListener("pointerdown", event => {
      if (event.button === 0) {
        this.dragged = this.timeOf(event);
        area.setPointerCapture(event.pointerId);
      }
    });
    area.addEventListener("pointerup", event => {
      const far = this.dragged !== null && Math.abs(this.timeOf(event) - this.dragged) / (axis.until - axis.from) > 0.01;
      this.dragged = null;
      far ? axis.take() : axis.select(null);
    });
    area.addEventListener("pointercancel", () => {
      this.dragged = null;
      axis.select(null);
    });
    area.addEventListener("pointerleave", () => {
      if (this.dragged === null) { axis.point(null); }
    });
    area.addEventListener("keydown", event => this.key(event));
    area.addEventListener("blur", () => {
      axis.select(null);
      axis.point(null);
    });
  }

  private key(event: KeyboardEvent): void {
    const axis = this.axis;
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
    if (by !== undefined) {
      const was = axis.cursor ?? (by > 0 ? -1 : axis.steps);
      const step = Math.max(0, Math.min(axis.steps - 1, was + by));
      if (event.shiftKey) {
        axis.select([axis.selection ? axis.selection[0] : axis.at(was) + (by < 0 ? axis.step : 0),
                     axis.at(step) + (by > 0 ? axis.step : 0)]);
      }
      axis.point(axis.at(step));
      this.spoken.textContent = this.picture?.say(step) ?? "";
    } else if (event.key === "Enter") {
      axis.take();
    } else if (event.key === "Escape") {
      axis.select(null);
      axis.point(null);
    } else {
      return;
    }
    event.preventDefault();
  }

  // -- drawing ------------------------------------------------------------------------------------

  private pen(canvas: HTMLCanvasElement): Pen | null {
    const width = this.area.clientWidth, height = this.area.clientHeight, scale = devicePixelRatio || 1;
    const c = canvas.getContext("2d");
    if (!c || !this.picture || width < LEFT + RIGHT + 20 || height < TOP + BOTTOM + 8) { return null; }
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.font = `12px ${variable("--font")}`;
    const axis = this.axis, picture = this.picture, right = width - RIGHT, bottom = height - BOTTOM;
    const per = (right - LEFT) / (axis.until - axis.from);
    return { c, left: LEFT, right, top: TOP, bottom,
             x: at => LEFT + (at - axis.from) * per,
             y: value => bottom - Math.max(0, Math.min(1, picture.share(value))) * (bottom - TOP) };
  }

  private draw(): void {
    this.place();
    const pen = this.pen(this.under);
    if (!pen || !this.picture) { return; }
    const { c, left, right, bottom } = pen;
    c.strokeStyle = variable("--line");
    c.fillStyle = variable("--quiet");
    c.textBaseline = "middle";
    c.textAlign = "right";
    c.lineWidth = 1;
    for (const line of this.picture.lines) {
      const y = Math.round(pen.y(line.value)) + 0.5;
      c.beginPath();
      c.moveTo(left, y);
      c.lineTo(right, y);
      c.stroke();
      c.fillText(line.text, left - 6, y);
    }
    c.textAlign = "center";
    for (const tick of ticks(this.axis.from, this.axis.until, Math.max(2, Math.floor((right - left) / 72)))) {
      const x = pen.x(tick.at);
      if (x > left + 16 && x < right - 16) { c.fillText(tick.text, x, bottom + 11); }
      c.fillRect(Math.round(x), bottom, 1, 4);
    }
    c.save();
    c.beginPath();
    c.rect(left, 0, right - left, bottom);
    c.clip();
    this.picture.draw(pen);
    c.restore();
    this.drawOver();
  }

  private drawOver(): void {
    const pen = this.pen(this.over), axis = this.axis;
    if (!pen || !this.picture) { return; }
    const { c, top, bottom } = pen;
    if (axis.selection) {
      const [a, b] = axis.selection.map(pen.x);
      c.globalAlpha = 0.2;
      c.fillStyle = variable("--focus");
      c.fillRect(Math.min(a, b), top, Math.abs(b - a), bottom - top);
      c.globalAlpha = 1;
    }
    if (axis.cursor !== null) {
      c.fillStyle = variable("--text");
      c.fillRect(Math.round(pen.x(axis.at(axis.cursor) + axis.step / 2)), top, 1, bottom - top);
    }
    fill(this.legend, ...this.picture.legend(axis.cursor));
  }
}

/** What a step is called in a legend: its time, and its day unless that is today. */
export function stepName(axis: TimeAxis, step: number): string {
  const at = axis.at(step);
  return axis.step >= 3600 ? stretch(at, at + axis.step)
    : `${day(at) === day(Date.now() / 1000) ? "" : `${day(at)} `}${clock(at, axis.step < 60)}`;
}

// -- what charts draw -----------------------------------------------------------------------------

/** A column for each step from one height to the next: columns[layer][step]. */
export function drawStack(pen: Pen, axis: TimeAxis, columns: (number | null)[][], fills: (string | CanvasPattern)[]): void {
  for (let i = 0; i < axis.steps; i++) {
    const x = Math.round(pen.x(axis.at(i))), width = Math.round(pen.x(axis.at(i + 1))) - x;
    let sum = 0;
    columns.forEach((column, k) => {
      const value = column[i];
      if (value) {
        const y = pen.y(sum), to = pen.y(sum + value);
        pen.c.fillStyle = fills[k];
        pen.c.fillRect(x, to, Math.max(1, width), y - to);
        sum += value;
      }
    });
  }
}

/** A line through the middles of the steps that have a value; where its neighbours have none, a dot. */
export function drawLine(pen: Pen, axis: TimeAxis, values: (number | null)[], colour: string, width: number, dashes: number[]): void {
  const { c } = pen;
  c.strokeStyle = c.fillStyle = colour;
  c.lineWidth = width;
  c.setLineDash(dashes);
  c.beginPath();
  values.forEach((value, i) => {
    if (value === null) { return; }
    const x = pen.x(axis.at(i) + axis.step / 2), y = pen.y(value);
    const alone = (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null;
    if (alone) { c.fillRect(x - 1, y - 1, 2, 2); }
    (values[i - 1] ?? null) === null ? c.moveTo(x, y) : c.lineTo(x, y);
  });
  c.stroke();
  c.setLineDash([]);
}

/** A small dash in each step. */
export function drawDots(pen: Pen, axis: TimeAxis, values: (number | null)[], colour: string): void {
  pen.c.fillStyle = colour;
  values.forEach((value, i) => {
    if (value) {
      const x = pen.x(axis.at(i)), width = Math.min(6, pen.x(axis.at(i + 1)) - x);
      pen.c.fillRect(Math.round(x + (pen.x(axis.at(i + 1)) - x - width) / 2), Math.round(pen.y(value)), Math.max(1, width), 1.5);
    }
  });
}

/** Hatching over the steps that cannot be trusted. */
export function drawUntrusted(pen: Pen, axis: TimeAxis, verdicts: (string | null)[]): void {
  pen.c.fillStyle = hatching(pen.c, variable("--untrusted"), null);
  verdicts.forEach((verdict, i) => {
    if (verdict !== null && verdict !== "ok") {
      const x = pen.x(axis.at(i));
      pen.c.fillRect(x, pen.top, Math.max(2, pen.x(axis.at(i + 1)) - x), pen.bottom - pen.top);
    }
  });
}

/** Triangles at the upper edge, each with a thin line down. */
export function drawMarks(pen: Pen, times: number[]): void {
  pen.c.fillStyle = variable("--mark");
  for (const at of times) {
    const x = Math.round(pen.x(at));
    pen.c.beginPath();
    pen.c.moveTo(x - 5, pen.top - 12);
    pen.c.lineTo(x + 5, pen.top - 12);
    pen.c.lineTo(x, pen.top - 3);
    pen.c.fill();
    for (let y = pen.top; y < pen.bottom; y += 6) { pen.c.fillRect(x, y, 1, 3); }
  }
}
