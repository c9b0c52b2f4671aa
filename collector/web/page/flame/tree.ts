// SPDX-License-Identifier: Apache-2.0
// Weighed trees of frames, in typed arrays: laid out once for each metric, so that a zoom only looks things up.
import type { Metric, Profile } from "./data";

/** Nodes, depth first: 0 is the root. x and weights are in the metric's unit. */
export interface Tree {
  count: number;
  frame: Uint32Array;
  parent: Uint32Array;
  /** The first node behind a node that is not above it. */
  end: Uint32Array;
  self: Float64Array;
  total: Float64Array;
  /** Of the profile before, as they are; NULL: nothing to compare with. */
  beforeSelf: Float64Array | null;
  beforeTotal: Float64Array | null;
  /** Where a node begins. */
  x: Float64Array;
  /** The profile's stack that a node is; NULL: it is of several. */
  stack: Uint32Array | null;
}

/** What a weight of the profile before counts, so that both are as heavy. */
export function scaleOf(t: Tree): number {
  return t.beforeTotal && t.beforeTotal[0]! > 0 ? t.total[0]! / t.beforeTotal[0]! : 1;
}

function sums(parent: Uint32Array, self: Float64Array): Float64Array {
  const total = self.slice();
  for (let i = self.length - 1; i > 0; i--) { total[parent[i]!]! += total[i]!; }
  return total;
}

// Of nodes depth first.
function finish(frame: Uint32Array, parent: Uint32Array, self: Float64Array, before: Float64Array | null,
                stack: Uint32Array | null): Tree {
  const count = frame.length, end = new Uint32Array(count), x = new Float64Array(count), next = new Float64Array(count);
  const total = sums(parent, self);
  for (let i = count - 1; i >= 0; i--) {
    end[i] = Math.max(end[i]!, i + 1);
    if (i > 0) { end[parent[i]!] = Math.max(end[parent[i]!]!, end[i]!); }
  }
  for (let i = 1; i < count; i++) {
    x[i] = next[parent[i]!]!;
    next[parent[i]!]! += total[i]!;
    next[i] = x[i]!;
  }
  return { count, frame, parent, end, self, total, beforeSelf: before, beforeTotal: before && sums(parent, before), x, stack };
}

/** What weighs anything, by a metric, in either profile. */
export function weigh(p: Profile, metric: Metric): Tree {
  const self = new Float64Array(p.count), before = p.compared ? new Float64Array(p.count) : null;
  metric.fill(self, false);
  if (before) { metric.fill(before, true); }
  const total = sums(p.parent, self), beforeTotal = before && sums(p.parent, before);
  const stack = new Uint32Array(p.count), place = new Uint32Array(p.count);
  let count = 0;
  for (let i = 0; i < p.count; i++) {
    if (i === 0 || total[i]! > 0 || (beforeTotal && beforeTotal[i]! > 0)) {
      place[i] = count;
      stack[count++] = i;
    }
  }
  const kept = stack.slice(0, count);
  return finish(kept.map(i => p.frame[i]!), kept.map(i => place[p.parent[i]!]!),
                Float64Array.from(kept, i => self[i]!), before && Float64Array.from(kept, i => before[i]!), kept);
}

/** A function wherever it stands: totals count once where it calls itself. */
export interface Weight { frame: number; self: number; total: number; beforeSelf: number; beforeTotal: number }

export function functionsOf(t: Tree, frames: number): Weight[] {
  const all: (Weight | undefined)[] = new Array(frames);
  const until = new Uint32Array(frames);
  for (let i = 1; i < t.count; i++) {
    const f = t.frame[i]!;
    const w = all[f] ??= { frame: f, self: 0, total: 0, beforeSelf: 0, beforeTotal: 0 };
    w.self += t.self[i]!;
    w.beforeSelf += t.beforeSelf?.[i] ?? 0;
    if (i >= until[f]!) {
      w.total += t.total[i]!;
      w.beforeTotal += t.beforeTotal?.[i] ?? 0;
      until[f] = t.end[i]!;
    }
  }
  return all.filter((w): w is Weight => w !== undefined);
}

/** What frames that match cover together, each moment once. */
export function covered(t: Tree, match: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < t.count;) {
    if (match[t.frame[i]!]) {
      sum += t.total[i]!;
      i = t.end[i]!;
    } else {
      i++;
    }
  }
  return sum;
}

/** Nodes that weigh nothing any more, the lowest of each stack, the heaviest first. */
export function vanished(t: Tree): number[] {
  const gone: number[] = [];
  for (let i = 1; t.beforeTotal && i < t.count; i++) {
    if (t.total[i] === 0 && t.beforeTotal[i]! > 0) {
      gone.push(i);
      i = t.end[i]! - 1;
    }
  }
  return gone.sort((a, b) => t.beforeTotal![b]! - t.beforeTotal![a]!);
}

// -- callers and callees ------------------------------------------------------------------------------------------------------------

/** A tree that grows in any order. */
class Growing {
  frame: number[];
  parent = [0];
  self = [0];
  before = [0];
  private known = new Map<number, number>();
  constructor(root: number, private frames: number) { this.frame = [root]; }
  above(node: number, frame: number): number {
    const key = node * this.frames + frame;
    let at = this.known.get(key);
    if (at === undefined) {
      at = this.frame.push(frame) - 1;
      this.parent.push(node);
      this.self.push(0);
      this.before.push(0);
      this.known.set(key, at);
    }
    return at;
  }
  /** Depth first, heavy children first. */
  tree(compared: boolean): Tree {
    const count = this.frame.length, total = this.self.slice();
    const children: number[][] = this.frame.map(() => []);
    for (let i = count - 1; i > 0; i--) {
      total[this.parent[i]!]! += total[i]!;
      children[this.parent[i]!]!.push(i);
    }
    const order = new Uint32Array(count), place = new Uint32Array(count), open = [0];
    for (let n = 0; open.length > 0; n++) {
      const i = open.pop()!;
      order[n] = i;
      place[i] = n;
      open.push(...children[i]!.sort((a, b) => total[a]! - total[b]!));
    }
    return finish(order.map(i => this.frame[i]!), order.map(i => place[this.parent[i]!]!),
                  Float64Array.from(order, i => this.self[i]!), compared ? Float64Array.from(order, i => this.before[i]!) : null, null);
  }
}

/** What a function calls, and what calls it: two trees with the function as their root, as heavy as its calls that are not within another one. */
export function sandwich(t: Tree, frame: number, frames: number): { callers: Tree; callees: Tree } {
  const callers = new Growing(frame, frames), callees = new Growing(frame, frames);
  const place = new Uint32Array(t.count);
  for (let i = 0; i < t.count;) {
    if (t.frame[i] !== frame) {
      i++;
      continue;
    }
    for (let j = i; j < t.end[i]!; j++) {
      place[j] = j === i ? 0 : callees.above(place[t.parent[j]!]!, t.frame[j]!);
      callees.self[place[j]!]! += t.self[j]!;
      callees.before[place[j]!]! += t.beforeSelf?.[j] ?? 0;
    }
    let at = 0;
    for (let up = i; up > 0 && t.parent[up]! > 0;) {
      up = t.parent[up]!;
      at = callers.above(at, t.frame[up]!);
    }
    callers.self[at]! += t.total[i]!;
    callers.before[at]! += t.beforeTotal?.[i] ?? 0;
    i = t.end[i]!;
  }
  return { callers: callers.tree(!!t.beforeSelf), callees: callees.tree(!!t.beforeSelf) };
}

// -- rows ---------------------------------------------------------------------------------------------------------------------------

/** The nodes of a tree that are drawn, row by row; in each from left to right. */
export interface Rows {
  level: Uint16Array;
  /** Row r has nodes[start[r]] and on, before nodes[start[r + 1]]. */
  start: Uint32Array;
  nodes: Uint32Array;
  count: number;
  /** Of the first node of a chain that is drawn as one: its last. Of all others themselves. */
  tail: Uint32Array;
}

/** How much of a node its one callee has to be, for both to be drawn as one. */
const CHAIN = 0.99;

export function rowsOf(t: Tree, collapse: boolean, isFunction: (frame: number) => boolean): Rows {
  const level = new Uint16Array(t.count), head = new Uint32Array(t.count), tail = new Uint32Array(t.count);
  const folded = new Uint8Array(t.count);
  const callees = new Uint32Array(t.count);
  for (let i = 1; i < t.count; i++) { callees[t.parent[i]!] += t.total[i]! > 0 ? 1 : 0; }
  let deepest = 0;
  for (let i = 0; i < t.count; i++) {
    const up = t.parent[i]!;
    folded[i] = collapse && i > 0 && up > 0 && callees[up] === 1 && t.total[i]! >= CHAIN * t.total[up]! &&
      isFunction(t.frame[i]!) && isFunction(t.frame[up]!) ? 1 : 0;
    head[i] = folded[i] ? head[up]! : i;
    tail[i] = i;
    tail[head[i]!] = i;
    level[i] = i === 0 ? 0 : level[up]! + (folded[i] ? 0 : 1);
    if (t.total[i]! > 0) { deepest = Math.max(deepest, level[i]!); }
  }
  const start = new Uint32Array(deepest + 2);
  const drawn = (i: number): boolean => i === 0 || (t.total[i]! > 0 && !folded[i]);
  for (let i = 0; i < t.count; i++) { if (drawn(i)) { start[level[i]! + 1]!++; } }
  for (let r = 0; r <= deepest; r++) { start[r + 1]! += start[r]!; }
  const nodes = new Uint32Array(start[deepest + 1]!), at = start.slice();
  for (let i = 0; i < t.count; i++) { if (drawn(i)) { nodes[at[level[i]!]!++] = i; } }
  return { level, start, nodes, count: deepest + 1, tail };
}
