// SPDX-License-Identifier: Apache-2.0
// Profiles below a chart, on its time axis: each a bar from its begin to its end, and a link to it. Runs of sampling that go on now end where
// the chart does. Bars that would lie on each other have lanes of their own; very short ones behind one another stand as one.
import { hrefOf } from "./address";
import type { Mark, RunNow } from "./api";
import { fill, h } from "./dom";
import { moment, stretch } from "./times";

const LANES = 4;
const LEAST = 0.012; // of the axis, that a bar takes at least

export type ProfileMark = Mark & { from_s: number; node: string; text: string; label: string; trigger: string; of: "samples" | "full" };
type Bar = { from: number; until: number; kind: string; title: string; href: string; same: string; lane: number; count: number };

export function profilesOf(marks: Mark[]): ProfileMark[] {
  return marks.filter((m): m is ProfileMark => m.kind === "profile" && typeof m.from_s === "number");
}

/** What began it, and why; or what it is called. */
export function what(m: { of: string; text: string; trigger: string }): string {
  const named = m.text ? ` “${m.text}”` : "";
  return !m.trigger ? `${m.of === "samples" ? "Samples of stacks" : "Full trace"}${named}`
    : m.text.startsWith(`the trigger ${m.trigger}: `) ? m.text : `the trigger ${m.trigger}${named}`;
}

export function whatNow(r: RunNow): string {
  return what({ of: "samples", text: r.name, trigger: r.trigger });
}

function kindOf(of: string, trigger: string): string {
  return of === "full" ? "full" : trigger ? "triggered" : "sampled";
}

function barOf(m: ProfileMark): Bar {
  return { from: m.from_s, until: Math.max(m.from_s, m.at_s), kind: kindOf(m.of, m.trigger), lane: 0, count: 1,
           title: `${what(m)}, ${stretch(m.from_s, Math.max(m.from_s, m.at_s), true)}, ${m.node}: profile ${m.amount}`,
           href: hrefOf({ profile: m.amount, view: "", sort: "" }), same: JSON.stringify([m.node, m.label, m.of, m.trigger]) };
}

function barNow(r: RunNow, until: number): Bar {
  return { from: r.since_s, until, kind: `${kindOf("samples", r.trigger)} now`, lane: 0, count: 1, same: JSON.stringify([r.node, r.since_s]),
           title: `${whatNow(r)}, since ${moment(r.since_s, true)}, ${r.node}: goes on now`,
           href: hrefOf({ view: "nodes", nodes: [r.node], profile: 0 }) };
}

/** In lanes; what follows something alike within less than a bar's least length is one with it. */
function placed(bars: Bar[], least: number): Bar[] {
  const out: Bar[] = [], ends: number[] = [];
  for (const bar of [...bars].sort((a, b) => a.from - b.from)) {
    const before = [...out].reverse().find(b => b.same === bar.same);
    if (before && bar.until - bar.from < least && bar.from < Math.max(before.until, before.from + least)) {
      before.count++;
      before.until = Math.max(before.until, bar.until);
      before.title = `${before.count} profiles; the last of them: ${bar.title}`;
      before.href = bar.href;
      ends[before.lane] = Math.max(ends[before.lane]!, before.until);
      continue;
    }
    const free = ends.findIndex(end => end <= bar.from);
    bar.lane = free >= 0 ? free : Math.min(ends.length, LANES - 1);
    ends[bar.lane] = Math.max(bar.until, bar.from + least);
    out.push(bar);
  }
  return out;
}

export class Strip {
  readonly element = h("nav", { class: "strip", "aria-label": "Profiles of this time", hidden: true });
  private shown = "";

  show(marks: Mark[], now: RunNow[], from: number, until: number): void {
    const all = [...profilesOf(marks).map(barOf), ...now.map(r => barNow(r, until))].filter(b => b.until >= from && b.from < until);
    const bars = placed(all, (until - from) * LEAST), shown = JSON.stringify([bars, from, until]);
    if (shown === this.shown) { return; }
    this.shown = shown;
    this.element.hidden = bars.length === 0;
    this.element.dataset.lanes = String(Math.max(0, ...bars.map(b => b.lane + 1)));
    fill(this.element, h("span", { "aria-hidden": "true" }, "profiles"), h("div", {}, ...bars.map(b => this.draw(b, from, until))));
  }

  private draw(b: Bar, from: number, until: number): HTMLElement {
    const share = (at: number): number => Math.max(0, Math.min(1, (at - from) / (until - from)));
    const begin = share(b.from), end = share(b.until), middle = (begin + end) / 2;
    const link = h("a", { class: `ran ${b.kind} lane-${b.lane} ${middle < 0.2 ? "left" : middle > 0.8 ? "right" : ""}`, href: b.href,
                          "aria-label": b.title }, h("span", { class: "tip", "aria-hidden": "true" }, b.title));
    link.style.left = `${100 * Math.min(begin, 1 - LEAST)}%`;
    link.style.width = `${100 * Math.max(LEAST, end - begin)}%`;
    return link;
  }
}
