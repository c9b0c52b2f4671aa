// SPDX-License-Identifier: Apache-2.0
// A request's calls, put in order: as a tree or by process, which of them it had to wait for, and what all of a tier were.
import type { Slow, Span } from "./api";

export type Call = Span & { depth: number; children: Call[]; above: Call | null; critical: boolean };
/** What stands side by side, in the order of time. open: whether what it calls is shown below it; null: it calls nothing, or is a lane. */
export type Line = { calls: Call[]; text: string; depth: number; open: boolean | null };

const end = (c: Call): number => c.start_us + c.duration_us;

/** All calls; those without a caller come first in each list. A hostile answer may name what is not there: that has no caller. */
export function callsOf(slow: Slow): Call[] {
  const all: Call[] = slow.spans.map(s => ({ ...s, depth: 0, children: [], above: null, critical: false }));
  for (const call of all) { // callers stand before what they call
    const above = call.parent !== null && call.parent < call.span ? all[call.parent] : undefined;
    if (above) {
      call.above = above;
      call.depth = above.depth + 1;
      above.children.push(call);
    }
  }
  markCritical(all, slow.request.duration_us);
  return all;
}

/** Backwards from the end: whatever was the last to be waited for, and before it what ended before it began. */
function markCritical(all: Call[], duration: number): void {
  const todo: { among: Call[]; until: number }[] = [{ among: all.filter(c => !c.above), until: duration }];
  for (let work = todo.pop(); work; work = todo.pop()) {
    let until = work.until;
    for (const call of [...work.among].sort((a, b) => end(b) - end(a))) {
      if (!call.async && end(call) <= until + 0.001) {
        call.critical = true;
        until = call.start_us - call.wait_us;
        todo.push({ among: call.children, until: end(call) });
      }
    }
  }
}

/** Callers above what they call. */
export function asTree(all: Call[], closed: Set<number>): Line[] {
  const out: Line[] = [];
  const todo = all.filter(c => !c.above).reverse();
  for (let call = todo.pop(); call; call = todo.pop()) {
    out.push({ calls: [call], text: call.name, depth: call.depth, open: call.children.length > 0 ? !closed.has(call.span) : null });
    if (!closed.has(call.span)) { todo.push(...[...call.children].reverse()); }
  }
  return out;
}

/** A lane for each process, in the order of their first calls. What runs within another call of the process stands below that. */
export function asLanes(all: Call[]): Line[] {
  const lanes = new Map<string, Call[][]>();
  for (const call of [...all].sort((a, b) => a.start_us - b.start_us || a.depth - b.depth)) {
    const process = `${call.pid} ${call.node}`, rows = lanes.get(process) ?? [];
    lanes.set(process, rows);
    const free = rows.find(row => end(row[row.length - 1]) <= call.start_us);
    free ? free.push(call) : rows.push([call]);
  }
  return [...lanes.values()].flatMap(rows => rows.map((calls, k) => ({ calls, text: k === 0 ? calls[0].pid : "", depth: 0, open: null })));
}

export type Sum = { name: string; calls: number; self_us: number; wait_us: number; failed: number };

/** What a call's outcome says went wrong; "": nothing did. */
export function failure(call: Span): string {
  return call.outcome === "ok" || call.outcome === "open" ? "" : call.outcome;
}

/** All calls of each tier together. */
export function sums(all: Call[]): Sum[] {
  const out = new Map<string, Sum>();
  for (const c of all) {
    const sum = out.get(c.name) ?? { name: c.name, calls: 0, self_us: 0, wait_us: 0, failed: 0 };
    sum.calls++;
    sum.self_us += c.self_us;
    sum.wait_us += c.wait_us;
    sum.failed += failure(c) ? 1 : 0;
    out.set(c.name, sum);
  }
  return [...out.values()];
}
