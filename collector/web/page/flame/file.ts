// SPDX-License-Identifier: Apache-2.0
// The script of a file that `kprof flame --out x.html` writes: the data stand in it. What is chosen stands behind the # of its address.
import { fill, h } from "../dom";
import type { Parts } from "../heat";
import type { ProfileData } from "./data";
import { addLook, type Look, lookOf } from "./look";
import { dataOf, type PartsFile, wholeCells } from "./part";
import { type Flame, flameHeading, mountFlame } from "./view";
import { type HeatFile, When } from "./when";

function stored<T>(id: string): T | null {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent!) as T : null;
}

const main = document.getElementById("flame")!, data = stored<ProfileData>("data")!, heat = stored<HeatFile>("heat");
const cells = stored<PartsFile>("parts");
const when = heat && new When(heat, cells && (parts => draw(parts)));
const place = when ? h("div", { class: "with-heat" }) : main, heading = h("div", {});
const asked = (): Look => lookOf(new URLSearchParams(location.hash.slice(1)));
let flame: Flame | null = null;

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

// The whole, or a part of it; a second part is compared with the first one, or with the whole.
function draw({ part, other }: Parts): void {
  const whole = (): [number, number] => [0, heat!.length_ms];
  const shown = cells && (part || other) ? dataOf(data, cells, wholeCells(cells, part ?? whole()), other && wholeCells(cells, other)) : data;
  fill(heading, when && flameHeading(shown.title, shown.notes));
  flame?.destroy();
  flame = mountFlame(place, shown, { look: asked(), looked, bare: when !== null });
}

if (when) { fill(main, h("div", { class: "file-head" }, heading, when.element), place); }
draw({ part: null, other: null });
when?.show(asked().metric ?? data.metric);
addEventListener("popstate", () => {
  flame?.look(asked());
  when?.show(asked().metric ?? data.metric);
});
