// SPDX-License-Identifier: Apache-2.0
// What a sampler saw that always runs: the profiles of a node and a label, made one after the other, as one heat map. A range that is chosen
// on it is drawn below: the part of the profile that it is of; where it is of several, each is a link.
import { hrefOf, stretchOf, type View } from "./address";
import { get, type Heat, type Nodes, type Piece } from "./api";
import { fill, h } from "./dom";
import type { ProfileData } from "./flame/data";
import { type Flame, flameHeading, mountFlame } from "./flame/view";
import { HeatMap, type Part, partName } from "./heat";
import type { Shown } from "./shown";
import { failed } from "./states";
import { clock, secondsOf, stretch } from "./times";

const METRICS = ["active", "reductions", "memory", "memory_growth", "memory_release", "queue", "queue_growth", "binary", "binary_growth", "binary_release"];
const USUAL = "always", MOST_LINKS = 12;

type Chosen = { piece: Piece; part: Part };

/** What a range is of: of each profile the part, in its own time. */
function partsOf(pieces: Piece[], [from, until]: Part): Chosen[] {
  return pieces.filter(p => p.from_ms < until && p.until_ms > from).map(piece => ({ piece,
    part: [Math.max(0, Math.round(from - piece.from_ms)), Math.round(Math.min(until, piece.until_ms) - piece.from_ms)] as Part }));
}

export function samplesView(v: View, nodes: Nodes, gone: AbortSignal): Shown {
  const label = v.label || USUAL, node = v.nodes.length === 1 ? v.nodes[0]! : "";
  const heading = h("div", {}), told = h("p", { class: "quiet", role: "status" }), links = h("ul", { class: "flames" }), flame = h("div", { class: "flame-page" });
  const element = h("div", { class: "sampled" });
  let heat: Heat | null = null, part: Part | null = null, drawn: Flame | null = null, metric = METRICS[0]!, title = "";
  let asking = new AbortController();
  const zero = (): number => secondsOf(heat!.started_at!);
  const at = (ms: number): string => {
    const rest = heat!.cell_ms < 1000 ? Math.floor(ms % 1000) : 0;
    return `${clock(zero() + ms / 1000, ms % 60000 !== 0)}${rest > 0 ? `.${String(rest).padStart(3, "0").replace(/0+$/, "")}` : ""}`;
  };
  const map = new HeatMap(parts => {
    part = parts.part;
    void draw().catch(error => {
      if (!asking.signal.aborted) { fill(flame, failed(error instanceof Error ? error.message : String(error))); }
    });
  }, true, at);
  const by = h("select", { id: "metric", onchange: () => {
    metric = by.value;
    void load(gone).catch(error => fill(element, failed(error instanceof Error ? error.message : String(error))));
  } }, ...METRICS.map(m => h("option", { value: m }, m.replace(/_/g, " "))));

  gone.addEventListener("abort", () => {
    asking.abort();
    drawn?.destroy();
    map.destroy();
  });

  function link({ piece, part: [from, until] }: Chosen): HTMLElement {
    const whole = from <= 0 && until >= Math.floor(piece.until_ms - piece.from_ms);
    return h("li", {}, h("a", { href: hrefOf({ view: "", profile: piece.id, before: 0, look: metric === "active" ? {} : { metric },
      drawn: whole ? {} : { part_from: String(from), part_until: String(until) } }) }, `profile ${piece.id}`),
      ` ${stretch(zero() + (piece.from_ms + from) / 1000, zero() + (piece.from_ms + until) / 1000, true)}${whole ? ", all of it" : ""}`);
  }

  // The longest part of what was chosen.
  async function draw(): Promise<void> {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking, all = part && heat ? partsOf(heat.profiles ?? [], part) : [];
    const one = [...all].sort((a, b) => (b.part[1] - b.part[0]) - (a.part[1] - a.part[0]))[0];
    fill(links, ...all.slice(0, MOST_LINKS).map(link), all.length > MOST_LINKS ? h("li", {}, `and ${all.length - MOST_LINKS} more`) : null);
    fill(told, !part ? "A range that is chosen on the map is drawn here." : !one ? "No profile is of that time."
      : `${all.length > 1 ? `The range is of ${all.length} profiles; drawn is` : "Drawn is"} ${partName(one.part)} of profile ${one.piece.id}.`);
    if (!one) {
      drawn?.destroy();
      drawn = null;
      fill(flame);
      return;
    }
    const data = await get<ProfileData>(`profiles/${one.piece.id}`, { part_from: one.part[0], part_until: one.part[1] }, signal);
    drawn?.destroy();
    drawn = mountFlame(flame, data, { bare: true, look: metric === "active" ? {} : { metric } });
  }

  async function load(signal: AbortSignal): Promise<void> {
    if (!node) {
      title = "samples";
      fill(element, h("section", { class: "state" }, h("h1", {}, "Of which node?"), ...nodes.nodes.map(n =>
        h("p", {}, h("a", { href: hrefOf({ nodes: [n] }) }, n)))));
      return;
    }
    const [from, until] = stretchOf(v);
    const answer = await get<Heat & { notes: string[] }>("heat", { node, label, from, until, metric }, signal);
    heat = answer;
    const begin = zero() + heat.from_ms / 1000, end = zero() + heat.length_ms / 1000;
    title = `“${label}” of ${node}, ${stretch(begin, end)}`;
    fill(heading, flameHeading(title, answer.notes.filter(note => !note.startsWith("Times of the day"))));
    if (!map.element.isConnected) {
      fill(element, heading, h("div", { class: "flame-bar" }, h("label", {}, "Hot are ", by)), map.element, told, links, flame);
    }
    map.show(heat, { part, other: null });
    await draw();
  }

  return {
    element, live: false, load,
    title: () => title,
    step: () => 3600,
    back: () => hrefOf({ view: "", label: "" }),
  };
}
