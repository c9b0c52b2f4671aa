// SPDX-License-Identifier: Apache-2.0
// A request's calls on a canvas, one line each: light until a call begins, its tier's colour while it lasts, a dark line as long as its
// own time. What is outside of the window is not drawn, so thousands of calls are no work.
import { type Call, failure, type Line } from "./calls";
import { mix, tierColour, variable } from "./colours";
import { h } from "./dom";
import { duration, plain, rounds } from "./numbers";

const LINE = 24, HEAD = 24, RIGHT = 8;

export class Waterfall {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly room = h("div", { class: "room" });
  private readonly spoken = h("p", { class: "spoken", "aria-live": "polite" });
  private readonly area: HTMLElement;
  private lines: Line[] = [];
  private chosen = 0;  // a line, and which of its calls
  private among = 0;
  private lanes = false;
  private from = 0;
  private until = 1;
  private dragged: number | null = null;
  private found = "";

  /** whole: how long all of it lasts, µs. choose: shows a call beside; turn: opens or closes one; home: the request's own node. */
  constructor(private readonly whole: number, private readonly home: string, private readonly choose: (call: Call) => void,
              private readonly turn: (call: Call, open: boolean) => void, gone: AbortSignal) {
    this.until = whole;
    this.area = h("div", { class: "calls", tabindex: "0", role: "group",
      "aria-label": "Calls. Up and down choose one, left and right close and open it or walk along a process, plus and minus zoom, comma and full stop move." },
      this.room, this.canvas);
    this.element = h("div", {}, this.area, this.spoken);
    new ResizeObserver(() => this.draw()).observe(this.area);
    this.area.addEventListener("scroll", () => this.draw());
    this.listen();
    addEventListener("kprof:look", () => this.draw(), { signal: gone });
  }

  /** lanes: a line is a process, not a call. */
  show(lines: Line[], lanes: boolean): void {
    const call = this.now();
    this.lines = lines;
    this.lanes = lanes;
    this.place(call);
    this.area.style.height = this.room.style.height = `${HEAD + lines.length * LINE}px`; // the style sheet has a cap
    this.draw();
  }

  private now(): Call | undefined { return this.lines[this.chosen]?.calls[this.among]; }

  private place(call: Call | undefined): void {
    const at = call ? this.lines.findIndex(l => l.calls.includes(call)) : 0;
    this.chosen = Math.max(0, at);
    this.among = Math.max(0, this.lines[this.chosen]?.calls.indexOf(call as Call) ?? 0);
  }

  find(text: string): number {
    this.found = text.toLowerCase();
    const hits = this.lines.flatMap(l => l.calls).filter(c => this.fits(c)), now = this.now();
    if (hits.length > 0 && !(now && this.fits(now))) {
      const at = this.lines.findIndex(l => l.calls.includes(hits[0]));
      this.pick(at, this.lines[at].calls.indexOf(hits[0]));
    }
    this.draw();
    return hits.length;
  }

  zoom(from: number, until: number): void {
    const least = this.whole / 1e5, length = Math.max(least, Math.min(this.whole, until - from));
    this.from = Math.max(0, Math.min(this.whole - length, from));
    this.until = this.from + length;
    this.draw();
  }

  zoomBy(factor: number, around: number): void {
    this.zoom(around - (around - this.from) * factor, around + (this.until - around) * factor);
  }

  middle(): number { return (this.from + this.until) / 2; }
  reset(): void { this.zoom(0, this.whole); }
  focus(): void { this.area.focus(); }

  /** Chooses one before anything is drawn. */
  begin(call: Call): void {
    this.place(call);
    this.choose(call);
  }

  pick(line: number, among: number): void {
    const call = this.lines[line]?.calls[among];
    if (!call) { return; }
    this.chosen = line;
    this.among = among;
    const top = line * LINE, room = this.area.clientHeight - HEAD;
    if (top < this.area.scrollTop) { this.area.scrollTop = top; }
    if (top + LINE > this.area.scrollTop + room) { this.area.scrollTop = top + LINE - room; }
    this.choose(call);
    this.draw();
  }

  /** Which of a line's calls is nearest to a time. */
  private nearest(line: number, us: number): number {
    const calls = this.lines[line]?.calls ?? [];
    const far = (c: Call): number => us < c.start_us ? c.start_us - us : Math.max(0, us - c.start_us - c.duration_us);
    return calls.reduce((best, c, k) => far(c) < far(calls[best]) ? k : best, 0);
  }

  // -- pointer and keys ---------------------------------------------------------------------------

  private left(): number { return Math.min(240, this.area.clientWidth * 0.35); }

  private timeOf(event: MouseEvent): number {
    const box = this.area.getBoundingClientRect(), left = this.left();
    return this.from + (event.clientX - box.left - left) / (box.width - left - RIGHT) * (this.until - this.from);
  }

  private lineOf(event: MouseEvent): number {
    return Math.floor((event.clientY - this.area.getBoundingClientRect().top - HEAD + this.area.scrollTop) / LINE);
  }

  private listen(): void {
    const area = this.area;
    area.addEventListener("wheel", event => {
      if (event.ctrlKey || event.shiftKey) {
        event.preventDefault();
        this.zoomBy(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, this.timeOf(event));
      }
    }, { passive: false });
    area.addEventListener("pointerdown", event => { this.dragged = this.timeOf(event); });
    area.addEventListener("pointerup", event => {
      const a = this.dragged ?? 0, b = this.timeOf(event);
      if (this.dragged !== null && a >= this.from && Math.abs(a - b) > (this.until - this.from) * 0.02) {
        this.zoom(Math.min(a, b), Math.max(a, b));
      } else {
        this.pick(this.lineOf(event), this.nearest(this.lineOf(event), b));
      }
      this.dragged = null;
    });
    area.addEventListener("dblclick", () => this.reset());
    area.addEventListener("pointermove", event => {
      const line = this.lineOf(event), call = this.lines[line]?.calls[this.nearest(line, this.timeOf(event))];
      area.title = call ? `${chain(call, this.home)}\n${duration(call.duration_us)}, itself ${duration(call.self_us)}, `
        + `waiting before ${duration(call.wait_us)}${call.wait_us > 0 ? call.measured ? " (measured)" : " (estimated)" : ""}${failure(call) ? `\nfailed: ${failure(call)}` : ""}` : "";
    });
    area.addEventListener("keydown", event => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    const length = this.until - this.from, call = this.now();
    const step = (by: number, aside = 0): void => {
      const line = Math.max(0, Math.min(this.lines.length - 1, this.chosen + by));
      this.pick(line, line === this.chosen ? this.among + aside : this.nearest(line, call?.start_us ?? 0));
      const now = this.now();
      this.spoken.textContent = now ? `${now.name}${now.node === this.home ? "" : ` on ${now.node}`}, ${duration(now.duration_us)}, itself ${duration(now.self_us)}` : "";
    };
    const keys: Record<string, () => void> = {
      ArrowUp: () => step(-1), ArrowDown: () => step(1), PageUp: () => step(-10), PageDown: () => step(10),
      Home: () => step(-this.lines.length), End: () => step(this.lines.length),
      ArrowLeft: () => this.lanes ? step(0, -1) : call && this.turn(call, false),
      ArrowRight: () => this.lanes ? step(0, 1) : call && this.turn(call, true),
      "+": () => this.zoomBy(0.5, this.around(call)), "=": () => this.zoomBy(0.5, this.around(call)),
      "-": () => this.zoomBy(2, this.around(call)), "0": () => this.reset(),
      ",": () => this.zoom(this.from - length / 4, this.until - length / 4),
      ".": () => this.zoom(this.from + length / 4, this.until + length / 4),
      Enter: () => call && this.zoom(call.start_us - call.wait_us, call.start_us + call.duration_us),
    };
    if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      keys[event.key]();
      event.preventDefault();
    }
  }

  // Zooms by keys stay at the chosen call while it can be seen.
  private around(call: Call | undefined): number {
    const middle = call ? call.start_us + call.duration_us / 2 : this.middle();
    return middle >= this.from && middle <= this.until ? middle : this.middle();
  }

  // -- drawing ------------------------------------------------------------------------------------

  private fits(call: Call): boolean {
    return this.found !== "" && `${call.name} ${call.pid} ${call.node}`.toLowerCase().includes(this.found);
  }

  private draw(): void {
    const width = this.area.clientWidth, height = Math.min(this.area.clientHeight || 400, HEAD + this.lines.length * LINE);
    const scale = devicePixelRatio || 1, c = this.canvas.getContext("2d");
    if (!c || width < 80) { return; }
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.font = `12px ${variable("--font")}`;
    c.textBaseline = "middle";
    const left = this.left(), per = (width - left - RIGHT) / (this.until - this.from);
    const x = (us: number): number => left + (us - this.from) * per;
    const first = Math.floor(this.area.scrollTop / LINE), last = Math.min(this.lines.length, first + Math.ceil(height / LINE) + 1);
    for (let i = first; i < last; i++) {
      this.drawLine(c, this.lines[i], HEAD + i * LINE - this.area.scrollTop, { left, width, x }, i === this.chosen);
    }
    c.fillStyle = variable("--background");
    c.fillRect(0, 0, width, HEAD);
    c.fillStyle = variable("--quiet");
    c.textAlign = "center";
    const length = this.until - this.from, ticks = rounds(length, Math.max(2, Math.floor((width - left) / 200)));
    const step = ticks[1] ?? length;
    for (let us = Math.ceil(this.from / step) * step; us <= this.until; us += step) {
      const text = plain(duration(us)), half = c.measureText(text).width / 2;
      c.fillText(text, Math.max(left + half, Math.min(width - RIGHT - half, x(us))), 10);
      c.fillRect(Math.round(x(us)), HEAD - 4, 1, 4);
    }
    c.fillStyle = variable("--line");
    c.fillRect(0, HEAD - 1, width, 1);
  }

  private drawLine(c: CanvasRenderingContext2D, line: Line, y: number,
                   place: { left: number; width: number; x(us: number): number }, chosen: boolean): void {
    const { left, width } = place, call = this.lanes ? null : line.calls[0];
    if (chosen) {
      c.fillStyle = variable("--raised");
      c.fillRect(0, y, width, LINE);
    }
    c.save();
    c.beginPath();
    c.rect(0, y, left - 8, LINE);
    c.clip();
    if (call && this.fits(call)) {
      c.fillStyle = variable("--hue-1");
      c.fillRect(0, y + 2, 3, LINE - 4);
    }
    this.drawName(c, line, y, left - 8);
    c.restore();
    c.save();
    c.beginPath();
    c.rect(left, y, width - left - RIGHT + 1, LINE);
    c.clip();
    for (const one of line.calls) {
      if (one.start_us <= this.until && one.start_us + one.duration_us >= this.from) { this.drawCall(c, one, y, place, one === this.now()); }
    }
    c.restore();
  }

  /** What stands on a line's left; of another node's with its name, as far as there is room. */
  private drawName(c: CanvasRenderingContext2D, line: Line, y: number, right: number): void {
    const call = this.lanes ? null : line.calls[0], node = line.text ? line.calls[0].node : this.home;
    const begin = 6 + Math.min(line.depth, 12) * 12, fold = line.open === null ? "" : line.open ? "▾ " : "▸ ";
    c.textAlign = "left";
    c.font = `${call?.critical ? "600 " : ""}12px ${variable("--font")}`;
    c.fillStyle = call ? (failure(call) ? variable("--error") : variable("--text")) : variable("--quiet");
    const name = fitting(c, `${fold}${line.text}`, right - begin), wide = c.measureText(name).width;
    c.fillText(name, begin, y + LINE / 2);
    if (node !== this.home) {
      c.font = `12px ${variable("--font")}`;
      c.fillStyle = variable("--quiet");
      const where = fitting(c, ` on ${node}`, right - begin - wide);
      if (where.length > " on ab…".length) { c.fillText(where, begin + wide, y + LINE / 2); } // less tells nothing
    }
  }

  private drawCall(c: CanvasRenderingContext2D, call: Call, y: number,
                   { left, width, x }: { left: number; width: number; x(us: number): number }, chosen: boolean): void {
    const begin = x(call.start_us), long = Math.max(1, x(call.start_us + call.duration_us) - begin);
    const waited = begin - x(call.start_us - call.wait_us);
    if (waited >= 0.5) {
      c.fillStyle = variable("--waiting");
      c.fillRect(begin - waited, y + 9, waited, 6);
    }
    const colour = tierColour(call.name);
    c.fillStyle = mix(colour, variable("--background"), 0.45);
    c.fillRect(begin, y + 5, long, 14);
    c.fillStyle = colour;
    c.fillRect(begin, y + 5, Math.max(1, long * Math.min(1, call.self_us / Math.max(call.duration_us, 1e-9))), 14);
    if (call.node !== this.home) { // notched: it runs elsewhere
      c.fillStyle = variable("--text");
      for (let at = Math.max(begin, left); at < Math.min(begin + long, width); at += 6) { c.fillRect(at, y + 5, 2, 2); }
    }
    if (failure(call)) {
      c.fillStyle = variable("--error");
      c.fillRect(begin, y + 17, long, 3);
    }
    c.strokeStyle = variable("--text");
    c.lineWidth = 1.5;
    if (call.async || call.outcome === "open") {
      c.setLineDash(call.async ? [3, 3] : [1, 2]);
      c.strokeRect(begin, y + 5, long, 14);
    } else if (call.critical) {
      c.strokeRect(begin, y + 5, long, 14);
    }
    c.setLineDash([]);
    if (this.found !== "" && this.fits(call)) { this.underline(c, begin, long, y, variable("--hue-1")); }
    if (chosen && this.lanes) { this.underline(c, begin, long, y, variable("--focus")); }
    this.drawText(c, call, y, { from: Math.max(left, begin), to: Math.min(width - RIGHT, begin + long), waited: begin - waited, left,
                                right: width - RIGHT });
  }

  private underline(c: CanvasRenderingContext2D, begin: number, long: number, y: number, colour: string): void {
    c.fillStyle = colour;
    c.fillRect(begin, y + 21, Math.max(6, long), 2);
  }

  /** How long it took: behind its bar, before it, or within; in a lane its name too, where it has room. */
  private drawText(c: CanvasRenderingContext2D, call: Call, y: number,
                   at: { from: number; to: number; waited: number; left: number; right: number }): void {
    const text = this.lanes ? `${call.name} ${duration(call.duration_us)}` : duration(call.duration_us), wide = c.measureText(text).width;
    const x = this.lanes ? at.to - at.from > wide + 16 ? at.from + 8 : null
      : at.to + wide + 6 < at.right ? at.to + 4 : at.waited - wide - 4 > at.left ? at.waited - wide - 4 : at.to - wide - 8;
    if (x === null) { return; }
    if (x < at.to && x + wide > Math.min(at.waited, at.from)) { // on the bar, or on its waiting
      c.fillStyle = variable("--background");
      c.fillRect(x - 4, y + 6, wide + 8, 12);
    }
    c.fillStyle = variable("--text");
    c.fillText(text, x, y + LINE / 2);
  }
}

/** As much of a text as there is room for. */
function fitting(c: CanvasRenderingContext2D, text: string, room: number): string {
  if (c.measureText(text).width <= room) { return text; }
  const letters = Array.from(text);
  while (letters.length > 0 && c.measureText(`${letters.join("")}…`).width > room) { letters.pop(); }
  return letters.length > 0 ? `${letters.join("")}…` : "";
}

/** "http › pool › storage on db@host": with the node where that is another one than before. */
function chain(call: Call, home: string): string {
  const names = [];
  for (let c: Call | null = call; c; c = c.above) { names.push(c.node === (c.above?.node ?? home) ? c.name : `${c.name} on ${c.node}`); }
  return names.reverse().join(" › ");
}
