// SPDX-License-Identifier: Apache-2.0
// What changed against another stretch: a number's difference, whether it is more than chance, and what a mean's change is made of.
import type { Change, Compared, Comparison, Part } from "./api";
import { tierClass } from "./colours";
import { type Child, h } from "./dom";
import { duration, percent } from "./numbers";
import { stretch, secondsOf } from "./times";

const TESTS = {
  mean: "Welch's t test of the means", quantile: "their 99 % intervals (order statistics) do not meet",
  errors: "a test of two proportions", none: "not tested",
};
export type Test = keyof typeof TESTS;

/** Comparisons by identity and tier. */
export class Changes {
  private readonly rows = new Map<string, Compared>();
  constructor(readonly all: Comparison) {
    for (const row of all.before.from ? all.rows : []) { this.rows.set(`${row.identity}\n${row.tier}`, row); }
  }

  of(identity: string, tier: string): Compared | undefined { return this.rows.get(`${identity}\n${tier}`); }
}

function signed(value: number, text: string): string {
  return `${value > 0 ? "+" : value < 0 ? "−" : "±"}${text}`;
}

/** A share of what was before, for a change; "new" where there was nothing. */
function relative(c: Change): string {
  if (c.before === 0) { return c.after === 0 ? "±0" : "new"; }
  const by = (c.after - c.before) / c.before;
  return by > 9 ? `× ${(c.after / c.before).toPrecision(3)}` : signed(by, `${Math.abs(by * 100).toFixed(Math.abs(by) < 0.0995 ? 1 : 0)} %`);
}

/** "▲ +180 %". In colour when it is more than chance; more is worse unless told otherwise. */
export function delta(c: Change | undefined, test: Test, say: (value: number) => string = duration, worse = true): HTMLElement | null {
  if (!c) { return null; }
  const by = c.after - c.before, even = by === 0 || (c.before !== 0 && Math.abs(by / c.before) < 0.0005);
  const word = even ? "" : test === "errors" ? signed(by, `${say(Math.abs(by)).replace(" %", "")} points`) : relative(c);
  const sure = c.sure && !even;
  return h("small", { class: `delta ${sure && worse ? (by > 0 ? "more" : "less") : ""}`,
    title: `${say(c.before)} before, ${say(c.after)} now. ${sure ? `More than chance: ${TESTS[test]}` : test === "none" ? "Not tested."
      : `May be chance: ${TESTS[test]} does not tell them apart`}` },
    even ? "=" : by > 0 ? "▲" : "▼", even ? h("span", { class: "spoken" }, " as before") : ` ${word}`, sure ? h("span", { class: "spoken" }, ", more than chance") : null);
}

/** A change in µs of a mean request, which nobody tested. */
export function shift(before: number, after: number): HTMLElement {
  const by = after - before, even = Math.abs(by) < Math.max(0.0005, 0.0005 * Math.max(before, after));
  return h("small", { class: "delta", title: `${duration(before)} before, ${duration(after)} now. Not tested.` },
    even ? "=" : `${by > 0 ? "▲" : "▼"} ${signed(by, duration(Math.abs(by)))}`);
}

const KINDS: Record<string, (tier: string) => string> = {
  self: tier => tier, uncovered: () => "what no tier covers", parallel: () => "work in parallel",
  waiting: tier => tier ? `waiting before ${tier}` : "waiting",
};

export function partName(part: Part): string {
  return (KINDS[part.kind] ?? (tier => `${part.kind} ${tier}`))(part.tier ?? "");
}

/** Waiting of a mean request, before and now; null: it is not told apart. */
export function waited(row: Compared): [number, number] | null {
  const apart = row.parts.filter(p => p.kind === "waiting");
  return row.waiting !== "apart" ? null
    : [apart.reduce((s, p) => s + p.before_us, 0), apart.reduce((s, p) => s + p.after_us, 0)];
}

/** Below that a part has not changed: the API tells whole nanoseconds. */
const LEAST_US = 0.0005;

function partList(parts: Part[]): HTMLElement {
  const sorted = parts.filter(p => Math.abs(p.after_us - p.before_us) >= LEAST_US).sort((a, b) => Math.abs(b.after_us - b.before_us) - Math.abs(a.after_us - a.before_us));
  const most = Math.max(1e-9, ...sorted.map(p => Math.abs(p.after_us - p.before_us)));
  return h("ol", {}, ...sorted.map(part => {
    const change = part.after_us - part.before_us;
    const key = part.kind === "self" ? tierClass(part.tier ?? "") : part.kind === "waiting" ? "hatched" : "uncovered";
    const line = h("i", { class: `bar ${key}` });
    line.style.width = `${Math.abs(change) / most * 64}px`;
    return h("li", { title: `${duration(part.before_us)}, then ${duration(part.after_us)}` },
      h("b", {}, signed(change, duration(Math.abs(change)))), ` ${partName(part)}`, line);
  }));
}

/** "mean +8.2 ms = +6.1 ms render +1.7 ms db …", the largest first, with bars. */
export function explained(row: Compared | undefined): HTMLElement | null {
  if (!row || row.calls_before === 0 || row.calls_after === 0) { return null; }
  const by = row.mean_us.after - row.mean_us.before, sign = by > 0 ? "▲ " : by < 0 ? "▼ " : "";
  return h("section", { class: "explained", "aria-label": "Where the change comes from" },
    h("h2", {}, "Mean request ", duration(row.mean_us.before), " → ", duration(row.mean_us.after), ", ",
      h("b", { class: row.mean_us.sure ? (by > 0 ? "more" : "less") : "" }, `${sign}${signed(by, duration(Math.abs(by)))}`),
      h("span", { class: "quiet" }, row.mean_us.sure ? " more than chance: " : " may be chance: ")),
    row.waiting === "mixed" ? h("p", { class: "quiet" }, "Its parts cannot be compared: one side is of an older version, which tells no waiting apart.")
      : partList(row.parts));
}

/** What makes the kept slow requests of an identity slow, against the mean of all. */
export function slowOnes(c: Comparison, identity: string): HTMLElement | null {
  const slow = c.slow.find(s => s.identity === identity);
  if (!slow || slow.parts.length === 0) { return null; }
  return h("section", { class: "explained", "aria-label": "What makes the slow ones slow" },
    h("h2", {}, `${slow.requests} slow ones, mean ${duration(slow.slow_us)}, `, h("span", { class: "quiet" },
      `against ${duration(slow.mean_us)} of all: `)),
    partList(slow.parts.map(p => ({ kind: p.kind, tier: p.tier, before_us: p.mean_us, after_us: p.slow_us }))));
}

/** What is compared, and by which tests. */
export function comparedWith(c: Comparison): Child {
  if (!c.before.from || !c.before.until) { return h("p", { class: "quiet" }, "Nothing is known of the stretch to compare with."); }
  const untrusted = c.before.verdict && c.before.verdict !== "ok";
  return h("p", { class: "quiet compared-with" }, "Against ", h("b", {}, stretch(secondsOf(c.before.from), secondsOf(c.before.until))), ". ",
    untrusted ? h("span", { class: "error" }, "Its numbers are not trusted. ") : null,
    h("span", { class: "more" }, "▲"), " ", h("span", { class: "less" }, "▼"),
    " in colour: more than chance, which is wrong once in 100. Means by Welch's t test, percentiles by order statistics, errors by two proportions.");
}

export const errorShare = (share: number): string => share === 0 ? "0" : percent(share);
