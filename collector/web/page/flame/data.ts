// SPDX-License-Identifier: Apache-2.0
// A profile as kprof writes it for this viewer (README.md: "A profile's data"), and the metrics that it has.

/** As it comes. */
export interface ProfileData {
  title: string;
  notes: string[];
  metric: string;
  names: string[];
  frames: { name: number[]; module: number[]; application: number[]; kind: number[] };
  stacks: { depth: number[]; frame: number[] };
  series: { name: string; unit: string; self: number[]; before?: number[] }[];
  before?: string;
}

/** What a frame is: a function, or what its process did instead of running. As in model/profile/stacks.h. */
export const enum Kind { Function, Waiting, Asleep, Gc, Cut, Group }

export const runs = (kind: number): boolean => kind === Kind.Function || kind === Kind.Cut || kind === Kind.Group;

export interface Frame { name: string; module: string; application: string; kind: number }

/** Stacks, depth first: 0 is the root, and what stands on a stack is between it and its `end`. */
export interface Profile {
  data: ProfileData;
  frames: Frame[];
  count: number;
  frame: Uint32Array;
  parent: Uint32Array;
  calls: number[] | null;
  compared: boolean;
  metrics: Metric[];
}

/** A metric: of each stack a value of its own. */
export interface Metric {
  name: string;
  label: string;
  unit: string;
  /** Fills what stacks weigh themselves; of the profile before, or of this one. */
  fill(self: Float64Array, before: boolean): void;
}

export function readProfile(data: ProfileData): Profile {
  const count = data.stacks.frame.length;
  const text = (i: number): string => data.names[i] ?? "";
  const frames = data.frames.name.map((name, i): Frame => ({
    name: text(name), module: text(data.frames.module[i]!), application: text(data.frames.application[i]!), kind: data.frames.kind[i]!,
  }));
  const parent = new Uint32Array(count);
  const path: number[] = [];
  for (let i = 0; i < count; i++) {
    const depth = data.stacks.depth[i]!;
    parent[i] = depth > 0 ? path[depth - 1]! : 0;
    path[depth] = i;
  }
  const profile: Profile = {
    data, frames, count, frame: Uint32Array.from(data.stacks.frame), parent,
    calls: data.series.find(s => s.name === "calls")?.self ?? null,
    compared: data.before !== undefined, metrics: [],
  };
  profile.metrics = data.series.flatMap(s => s.name === "wall" ? ofWall(profile, s) : [whole(s, s.name, s.name.replace(/_/g, " "), () => true)]);
  return profile;

  function whole(s: ProfileData["series"][0], name: string, label: string, takes: (kind: number) => boolean): Metric {
    return {
      name, label, unit: s.unit,
      fill(self, before) {
        const values = before ? s.before ?? [] : s.self;
        for (let i = 0; i < count; i++) {
          self[i] = takes(frames[profile.frame[i]!]!.kind) ? values[i] ?? 0 : 0;
        }
      },
    };
  }

  // The wall time, and what it is made of. Of waiting and its like only that is drawn, on the function that did it.
  function ofWall(p: Profile, s: ProfileData["series"][0]): Metric[] {
    const has = (kind: Kind): boolean => p.frame.some((f, i) => frames[f]!.kind === kind && (s.self[i]! > 0 || (s.before?.[i] ?? 0) > 0));
    const instead = (name: string, kind: Kind): Metric[] => has(kind) ? [{
      name, label: name, unit: s.unit,
      fill(self, before) {
        const values = before ? s.before ?? [] : s.self;
        self.fill(0);
        for (let i = 0; i < count; i++) {
          if (frames[p.frame[i]!]!.kind === kind) { self[p.parent[i]!]! += values[i] ?? 0; }
        }
      },
    }] : [];
    return [
      whole(s, "wall", "wall", () => true),
      ...has(Kind.Asleep) ? [whole(s, "awake", "wall, not asleep", kind => kind !== Kind.Asleep)] : [],
      whole(s, "self", "self (running)", runs),
      ...instead("waiting", Kind.Waiting), ...instead("asleep", Kind.Asleep), ...instead("gc", Kind.Gc),
    ];
  }
}
