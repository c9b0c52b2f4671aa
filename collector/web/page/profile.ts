// SPDX-License-Identifier: Apache-2.0
// A profile: its flame graph, in the viewer that also draws files; alone, or compared with another one. Of samples also when they were
// taken, and the part of it that is drawn.
import { hrefOf, rename, type View, view } from "./address";
import { get, type Heat, type Profile } from "./api";
import { fill, h } from "./dom";
import type { ProfileData } from "./flame/data";
import { type Flame, flameHeading, mountFlame } from "./flame/view";
import { HeatMap, type Part, partName, type Parts } from "./heat";
import { looked } from "./lists";
import type { Shown } from "./shown";
import { failed } from "./states";
import { moment, secondsOf } from "./times";

const OTHERS = 100, DAY_S = 86400;
const FULL_GROUPS = ["none", "identity", "process"];
const GROUPS = ["none", "status", "process", "application", "identity", "memory", "queue"];
/** What a heat map is of where the flame graph counts looks, which are as many all the time. */
const HEAT_METRIC = "active";

const isSampled = (data: ProfileData): boolean => data.series[0]?.name === "samples";

function partOf(from: string | undefined, until: string | undefined, length: number): Part | null {
  return from || until ? [Number(from ?? 0), Number(until ?? Math.ceil(length))] : null;
}

/** The way to all that a sampler made, up to its end. */
function dayOf(own: Profile | undefined): HTMLElement | null {
  const end = own ? Math.ceil(secondsOf(own.started_at) + own.duration_ms / 1000) : 0;
  return own && own.label && !own.trigger ? h("a", { href: hrefOf({ view: "samples", nodes: [own.node], label: own.label, from: end - DAY_S,
    until: end, profile: 0, before: 0 }) }, `a day of “${own.label}”`) : null;
}

export function profile(v: View, gone: AbortSignal): Shown {
  const heading = h("div", {}), bar = h("div", { class: "flame-bar" }), flame = h("div", { class: "flame-page" });
  const element = h("div", {});
  let title = "", drawn: Flame | null = null, list: Profile[] = [], asking = new AbortController();
  const heats = new Map<string, Heat>();
  const map = new HeatMap(parts => void again(partsIn(parts)));

  gone.addEventListener("abort", () => {
    asking.abort();
    drawn?.destroy();
    map.destroy();
  });

  // The same kind of the same node first: others compare what is different anyway.
  function compare(): HTMLElement {
    const own = list.find(p => p.id === v.profile);
    const like = (p: Profile): number => (p.node === own?.node ? 0 : 2) + (p.name === own?.name ? 0 : 1);
    const others = list.filter(p => p.id !== v.profile && p.kind === (own?.kind ?? p.kind)).sort((a, b) => like(a) - like(b));
    const select: HTMLSelectElement = h("select", { id: "before", onchange: () => void again({ before: Number(select.value),
        drawn: { ...v.drawn, before_part_from: undefined, before_part_until: undefined } }) },
      h("option", { value: 0 }, others.length > 0 ? "nothing" : "nothing: there is no other profile"),
      v.before > 0 && !others.some(p => p.id === v.before) ? h("option", { value: v.before, selected: true },
        v.before === v.profile ? "another part of it" : `profile ${v.before}`) : null,
      ...others.map(p => h("option", { value: p.id, selected: p.id === v.before },
        `${p.name || "profile"} ${p.id}, ${moment(secondsOf(p.started_at), false)}, ${looked(p)}, ${p.node}`)));
    return h("label", {}, "Compare with ", select);
  }

  function groups(sampled: boolean): HTMLElement {
    const select: HTMLSelectElement = h("select", { id: "group", onchange: () => void again({ drawn: { ...v.drawn,
        group: select.value === "none" ? undefined : select.value } }) },
      ...(sampled ? GROUPS : FULL_GROUPS).map(g => h("option", { value: g, selected: g === (v.drawn.group ?? "none") }, g)));
    return h("label", {}, "Group by ", select);
  }

  function parts(length: number): Parts {
    const d = v.drawn;
    return { part: partOf(d.part_from, d.part_until, length), other: partOf(d.before_part_from, d.before_part_until, length) };
  }

  // A second part is one of this very profile.
  function partsIn(chosen: Parts): Partial<View> {
    const ms = (part: Part | null, end: 0 | 1): string | undefined => part ? String(part[end]) : undefined;
    const other = chosen.other !== null, before = other ? v.profile : v.before === v.profile ? 0 : v.before;
    return { before, drawn: { group: v.drawn.group, part_from: ms(chosen.part, 0), part_until: ms(chosen.part, 1),
                              before_part_from: ms(chosen.other, 0), before_part_until: ms(chosen.other, 1) } };
  }

  // What is drawn changes, and the rest of the view stays.
  async function again(change: Partial<View>, step = true): Promise<void> {
    if (step) { rename(change, true); }
    v = { ...v, ...change };
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    try {
      await draw(signal);
      document.title = `${title} · kprof`;
    } catch (error) {
      if (!signal.aborted) { fill(flame, failed(error instanceof Error ? error.message : String(error))); }
    }
  }

  async function draw(signal: AbortSignal): Promise<void> {
    const [data, all] = await Promise.all([
      get<ProfileData>(`profiles/${v.profile}`, { before: v.before || undefined, identity: v.identities, ...v.drawn }, signal),
      list.length > 0 ? list : get<{ profiles: Profile[] }>("profiles", { most: OTHERS }, signal).then(told => told.profiles)]);
    const sampled = isSampled(data), heat = sampled ? await heatBy(view().look.metric, signal) : null;
    list = all;
    title = heat && v.drawn.part_until ? `${partName(parts(heat.length_ms).part!)} of ${data.title}` : data.title;
    fill(heading, sampled ? flameHeading(title, data.notes) : null);
    const chosen = heat && (v.drawn.part_from || v.drawn.part_until);
    fill(bar, compare(), groups(sampled),
      chosen ? h("button", { type: "button", onclick: () => void again(partsIn({ part: null, other: null })) }, "show all of it") : null,
      sampled && dayOf(list.find(p => p.id === v.profile)),
      v.identities.length > 0 ? h("a", { href: hrefOf({ profile: 0, before: 0 }) }, "back to the numbers") : null);
    if (!element.firstChild) {
      element.className = sampled ? "sampled" : "";
      fill(element, sampled && heading, bar, sampled && map.element, flame);
    }
    if (heat) { map.show(heat, parts(heat.length_ms)); }
    drawn?.destroy();
    drawn = mountFlame(flame, data, { bare: sampled, look: view().look, looked: (look, step) => {
      rename({ look }, step);
      if (sampled) { void reheat(look.metric); }
    } });
  }

  async function heatBy(metric: string | undefined, signal: AbortSignal): Promise<Heat> {
    const by = !metric || metric === "samples" ? HEAT_METRIC : metric;
    const known = heats.get(by) ?? await get<Heat>(`heat/${v.profile}`, { metric: by }, signal);
    heats.set(by, known);
    return known;
  }

  async function reheat(metric: string | undefined): Promise<void> {
    const { signal } = asking;
    const heat = await heatBy(metric, signal).catch(() => null);
    if (heat && !signal.aborted) { map.show(heat, parts(heat.length_ms)); }
  }

  return {
    element, live: false,
    async load(signal) {
      await draw(signal);
    },
    moved(to) {
      const rest = (of: View): string => JSON.stringify({ ...of, look: null, drawn: null, before: null });
      const same = rest(to) === rest(v) && drawn !== null;
      if (same && to.before === v.before && JSON.stringify(to.drawn) === JSON.stringify(v.drawn)) {
        drawn?.look(to.look);
        if (heats.size > 0) { void reheat(to.look.metric); }
      } else if (same) {
        void again(to, false);
      }
      return same;
    },
    title: () => title,
    step: () => 3600,
    back: () => hrefOf({ profile: 0, before: 0 }),
  };
}
