// SPDX-License-Identifier: Apache-2.0
// A profile: its flame graph, in the viewer that also draws files; alone, or compared with another one.
import { go, hrefOf, rename, type View, view } from "./address";
import { get, type Profile } from "./api";
import { fill, h } from "./dom";
import type { ProfileData } from "./flame/data";
import { type Flame, mountFlame } from "./flame/view";
import { count } from "./numbers";
import type { Shown } from "./shown";
import { moment, secondsOf } from "./times";

const OTHERS = 100;

export function profile(v: View, gone: AbortSignal): Shown {
  const flame = h("div", { class: "flame-page" }), bar = h("div", { class: "flame-bar" });
  const element = h("div", {}, bar, flame);
  let title = "", drawn: Flame | null = null;

  gone.addEventListener("abort", () => drawn?.destroy());

  // The same kind of the same node first: others compare what is different anyway.
  function compare(all: Profile[]): HTMLElement {
    const own = all.find(p => p.id === v.profile);
    const like = (p: Profile): number => (p.node === own?.node ? 0 : 2) + (p.name === own?.name ? 0 : 1);
    const others = all.filter(p => p.id !== v.profile && p.kind === (own?.kind ?? p.kind)).sort((a, b) => like(a) - like(b));
    const select: HTMLSelectElement = h("select", { id: "before", onchange: () => go({ before: Number(select.value) }) },
      h("option", { value: 0 }, others.length > 0 ? "nothing" : "nothing: there is no other profile"),
      v.before > 0 && !others.some(p => p.id === v.before) ? h("option", { value: v.before, selected: true }, `profile ${v.before}`) : null,
      ...others.map(p => h("option", { value: p.id, selected: p.id === v.before },
        `${p.name || "profile"} ${p.id}, ${moment(secondsOf(p.started_at), false)}, ${count(p.requests)} requests, ${p.node}`)));
    return h("label", {}, "Compare with ", select);
  }

  return {
    element, live: false,
    async load(signal) {
      const [data, list] = await Promise.all([
        get<ProfileData>(`profiles/${v.profile}`, { before: v.before || undefined, identity: v.identities }, signal),
        get<{ profiles: Profile[] }>("profiles", { most: OTHERS }, signal)]);
      title = data.title;
      fill(bar, compare(list.profiles), v.identities.length > 0 ? h("a", { href: hrefOf({ profile: 0, before: 0 }) }, "back to the numbers") : null);
      drawn?.destroy();
      drawn = mountFlame(flame, data, { look: view().look, looked: (look, step) => rename({ look }, step) });
    },
    moved(to) {
      const same = JSON.stringify({ ...to, look: null }) === JSON.stringify({ ...v, look: null });
      if (same) { drawn?.look(to.look); }
      return same && drawn !== null;
    },
    title: () => title,
    step: () => 3600,
    back: () => hrefOf({ profile: 0, before: 0 }),
  };
}
