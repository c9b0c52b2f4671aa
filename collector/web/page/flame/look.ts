// SPDX-License-Identifier: Apache-2.0
// What is chosen in the flame viewer, in words that an address can hold: a link shows the same, and back and forward lead through it.
import { hash } from "../hash";
import type { View } from "./canvas";
import type { Profile } from "./data";
import type { Tree } from "./tree";

const KEYS = ["metric", "way", "fold", "search", "around", "zoom"] as const;

/**
 * metric: its name. way: "flame". fold: "1". search: what is looked for. around: the function whose callers and callees are seen.
 * zoom: a stack, as placeOf says. What is missing is as a profile is at first.
 */
export type Look = Partial<Record<typeof KEYS[number], string>>;

/** What an address asks for. */
export function lookOf(p: URLSearchParams): Look {
  const look: Look = {};
  for (const key of KEYS) {
    const value = p.get(key);
    if (value) { look[key] = value; }
  }
  return look;
}

/** Puts it into an address, behind all else. */
export function addLook(p: URLSearchParams, look: Look): void {
  for (const key of KEYS) {
    if (look[key]) { p.set(key, look[key]!); }
  }
}

/** A stack is known by the names on it, so that a link also fits where other stacks are beside it, as in a comparison. */
const named = (caller: number, name: string): number => hash(`${caller}/${name}`);

/** What is zoomed to: the stack of a node and, of frames too narrow to be drawn apart, where they begin and end in it. */
export function placeOf(p: Profile, t: Tree, view: View): string | undefined {
  const path: number[] = [];
  for (let i = view.node; i > 0; i = t.parent[i]!) { path.push(i); }
  const name = path.reduceRight((caller, i) => named(caller, p.frames[t.frame[i]!]!.name), 0).toString(36);
  const from = view.from - t.x[view.node]!, to = view.to - t.x[view.node]!;
  return from > 0 || to < t.total[view.node]! ? `${name}_${from}_${to}` : view.node > 0 ? name : undefined;
}

/** The place of an address in a tree; null: it has none such. */
export function viewAt(p: Profile, t: Tree, place: string): View | null {
  const [name, first, last] = place.split("_"), names = new Uint32Array(t.count), wanted = parseInt(name!, 36);
  let node = wanted === 0 ? 0 : -1;
  for (let i = 1; i < t.count && node < 0; i++) {
    names[i] = named(names[t.parent[i]!]!, p.frames[t.frame[i]!]!.name);
    if (names[i] === wanted && t.total[i]! > 0) { node = i; }
  }
  if (node < 0) { return null; }
  const x = t.x[node]!, whole = t.total[node]!, from = Number(first ?? 0), to = Number(last ?? whole);
  return from >= 0 && from < to && to <= whole ? { node, from: x + from, to: x + to } : { node, from: x, to: x + whole };
}
