// SPDX-License-Identifier: Apache-2.0
// What a node does now: its processes and functions, anew every second while somebody looks. The collector samples stacks for it as long as
// it is asked, so nothing is asked while the view is closed or its tab is in the background.
import { Failed, type Look, type LookFunction, type LookProcess } from "./api";
import { type Child, fill, h } from "./dom";
import { figure } from "./format";
import { count, percent, processor } from "./numbers";
import { order, sentence } from "./orders";
import { lacks, nextStep } from "./runs";
import { type Column, showTable, sorted } from "./table";

const EVERY_MS = 1000, FIRST = 20;
/** Which processes are looked at, by the column that they are sorted by. */
const BY: Record<string, string> = { reductions: "reductions", memory: "memory", queue: "message_queue_len" };

function perSecond(change: number, text: string): string {
  return change === 0 ? "0" : `${change > 0 ? "+" : "−"}${text}`;
}

function processColumns(seconds: number): Column<LookProcess>[] {
  const bytes = (n: number): string => figure(n, "bytes");
  return [
    { key: "process", head: "Process", text: true, value: p => p.name || p.initial_call, cell: p =>
      h("span", { class: "process", title: [p.name, p.initial_call, p.application, p.function].filter(Boolean).join(", ") },
        h("b", {}, p.name || p.initial_call || p.pid), ` ${p.pid}`, h("span", { class: "quiet" }, p.function)) },
    { key: "application", head: "Application", text: true, wide: true, value: p => p.application, cell: p => p.application },
    { key: "status", head: "Status", text: true, wide: true, value: p => p.status, cell: p => p.status },
    { key: "reductions", head: "Reductions/s", value: p => p.reductions, cell: p => count(Math.round(p.reductions / seconds)) },
    { key: "memory", head: "Memory", value: p => p.memory ?? -1, cell: p => p.memory === undefined ? "–" : bytes(p.memory) },
    { key: "memory_change", head: "Memory/s", wide: true, value: p => p.memory_change ?? 0, cell: p => {
      const by = (p.memory_change ?? 0) / seconds;
      return p.memory === undefined ? "–" : perSecond(Math.round(by), bytes(Math.abs(by)));
    } },
    { key: "queue", head: "Queue", value: p => p.queue, cell: p => count(p.queue) },
    { key: "queue_change", head: "Queue/s", wide: true, value: p => p.queue_change, cell: p => {
      const by = Math.round(p.queue_change / seconds);
      return perSecond(by, count(Math.abs(by)));
    } },
  ];
}

function functionColumns(busy: number): Column<LookFunction>[] {
  const share = (n: number): string => n === 0 ? "0" : percent(n / Math.max(1, busy));
  return [
    { key: "function", head: "Function", text: true, value: f => f.name, cell: f => h("span", { title: f.name }, f.name) },
    { key: "self", head: "Itself", value: f => f.self, cell: f => share(f.self) },
    { key: "total", head: "With what it calls", value: f => f.total, cell: f => share(f.total) },
  ];
}

/** Why nothing more is seen; "": it goes on, or begins again. */
function ended({ told }: Look): string {
  return told?.reason && told.reason !== "stopped" ? `Sampling ended: ${told.text || told.reason}.` : "";
}

/** A table of which the first rows are shown, until somebody asks for all. */
class Part<T> {
  private readonly rows = h("div", { class: "rows" });
  private readonly more = h("button", { type: "button", hidden: true });
  private readonly nothing = h("p", { class: "quiet", hidden: true });
  readonly element = h("div", { class: "top-part" }, this.rows, this.nothing, this.more);
  private all = false;
  private last: { columns: Column<T>[]; rows: T[] } | null = null;

  /** none: what is told where there are no rows. */
  constructor(private readonly caption: string, private sort: string, none: string, private readonly key: (row: T) => string,
              private readonly resorted: (sort: string) => void) {
    this.nothing.textContent = none;
    this.more.addEventListener("click", () => {
      this.all = !this.all;
      this.draw();
    });
  }

  /** Somebody reads in it. */
  get held(): boolean {
    const at = getSelection();
    return this.rows.querySelector("tbody")?.matches(":hover") || Boolean(at && !at.isCollapsed && this.rows.contains(at.anchorNode));
  }

  show(columns: Column<T>[], rows: T[]): void {
    this.last = { columns, rows };
    this.draw();
  }

  private draw(): void {
    if (!this.last) { return; }
    const { columns, rows } = this.last, shown = sorted(rows, columns, this.sort);
    showTable(this.rows, { caption: this.caption, columns, rows: this.all ? shown : shown.slice(0, FIRST), sort: this.sort, key: this.key,
      resort: sort => {
        this.sort = sort;
        this.draw();
        this.resorted(sort);
      } });
    this.nothing.hidden = rows.length > 0;
    this.more.hidden = rows.length <= FIRST;
    this.more.textContent = this.all ? `Only the first ${FIRST}` : `All ${rows.length}`;
  }
}

export class Top {
  private readonly told = h("p", {});
  private readonly wrong = h("p", { role: "status" });
  private readonly processes = new Part<LookProcess>("Processes", "reductions", "No process was looked at.", p => p.pid, sort => this.look(sort));
  private readonly functions = new Part<LookFunction>("Functions", "self", "No process was running, or ready to.", f => f.name, () => undefined);
  readonly element = h("details", { class: "top" }, h("summary", {}, "What it does now"), this.told, this.wrong,
                       h("div", { class: "top-parts" }, this.processes.element, this.functions.element));
  private wish = "";                 // by what the processes are to be chosen from now on
  private asking = false;
  private seen = "";                 // the view that is shown

  constructor(private readonly name: string) {
    this.element.addEventListener("toggle", () => {
      if (this.element.open) { void this.again(); }
    });
  }

  private look(sort: string): void {
    this.wish = BY[sort.replace(/^-/, "")] ?? this.wish;
  }

  // One question after the other, until it is closed or the page shows something else.
  private async again(): Promise<void> {
    if (this.asking) { return; }
    this.asking = true;
    fill(this.told, "Looks …");
    while (this.element.open && this.element.isConnected) {
      if (document.visibilityState === "visible") { await this.ask(); }
      await new Promise(resolve => setTimeout(resolve, EVERY_MS));
    }
    this.asking = false;
  }

  private async ask(): Promise<void> {
    try {
      const look = await order<Look>("top", this.wish ? { node: this.name, by: this.wish } : { node: this.name });
      if (look.run > 0 || look.by === this.wish) { this.wish = ""; }
      this.say(ended(look));
      this.show(look);
    } catch (error) {
      const why = sentence(error);
      this.say(`${why}${error instanceof Failed ? nextStep(this.name)(why) : ""}`);
    }
  }

  private say(text: string): void {
    if (this.wrong.textContent !== text) { this.wrong.textContent = text; }
  }

  private show(look: Look): void {
    const { view } = look, now = JSON.stringify(view);
    if (!view || now === this.seen) { return; }
    const held = this.processes.held || this.functions.held, seconds = Math.max(1e-3, view.duration_us / 1e6);
    fill(this.told, ...this.summary(look, held));
    if (held && this.seen) { return; }
    this.seen = now;
    this.processes.show(processColumns(seconds), view.processes);
    this.functions.show(functionColumns(view.busy), view.functions);
  }

  private summary({ by, run, told, view, ran_s }: Look, held: boolean): Child[] {
    const what = by === "message_queue_len" ? "queue" : by;
    return [`${count(view!.processes.length)} processes by ${what}, ${count(view!.samples)} looks in ${Number((view!.duration_us / 1e6).toPrecision(2))} s`,
      told ? `, costs ${processor(told.cost_us / Math.max(1, ran_s))}${lacks(told)}` : "", run > 0 ? ", of the samples that are kept" : "",
      ". Shares are of looks at processes that ran, or were ready to.", held ? h("b", {}, " Stands still while you are in it.") : null];
  }
}
