// SPDX-License-Identifier: Apache-2.0
// The script of a file that `kprof flame --out x.html` writes: the data stand in it. What is chosen stands behind the # of its address.
import { fill, h } from "../dom";
import type { ProfileData } from "./data";
import { addLook, type Look, lookOf } from "./look";
import { flameHeading, mountFlame } from "./view";
import { type HeatFile, When } from "./when";

function stored<T>(id: string): T | null {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent!) as T : null;
}

const main = document.getElementById("flame")!, data = stored<ProfileData>("data")!, heat = stored<HeatFile>("heat");
const when = heat && new When(heat), place = when ? h("div", { class: "with-heat" }) : main;
const asked = (): Look => lookOf(new URLSearchParams(location.hash.slice(1)));

function looked(look: Look, step: boolean): void {
  when?.show(look.metric ?? data.metric);
  const p = new URLSearchParams();
  addLook(p, look);
  const hash = `#${p}`;
  if (hash === (location.hash || "#")) { return; }
  try {
    step ? history.pushState(null, "", hash) : history.replaceState(null, "", hash);
  } catch {
    // as where a mail program shows it: there is no address to change
  }
}

if (when) { fill(main, h("div", { class: "file-head" }, flameHeading(data.title, data.notes), when.element), place); }
const flame = mountFlame(place, data, { look: asked(), looked, bare: when !== null });
when?.show(asked().metric ?? data.metric);
addEventListener("popstate", () => {
  flame.look(asked());
  when?.show(asked().metric ?? data.metric);
});
