// SPDX-License-Identifier: Apache-2.0
// What a sampler saw that always runs: the profiles of a node and a label, made one after the other, as one heat map. A range that is chosen
// on it is drawn below, whether it is of one profile or of several, and a second one is what it is compared with. The map of a day is
// coarse: a link leads to the range's own, whose cells are finer.
import { hrefOf, stretchOf, type View } from "./address";
import { get, type Heat, type Nodes, type Piece } from "./api";
import { fill, h } from "./dom";
import type { ProfileData } from "./flame/data";
import { type Flame, flameHeading, mountFlame } from "./flame/view";
import { HeatMap, type Part, type Parts } from "./heat";
import type { Shown } from "./shown";
import { failed } from "./states";
import { clock, secondsOf, stretch } from "./times";

const METRICS = ["active", "reductions", "memory", "memory_growth", "memory_release", "queue", "queue_growth", "binary", "binary_growth", "binary_release"];
const USUAL = "always", MOST_LINKS = 12;
const FINEST_MS = 20; // a cell
const DAY_MS = 86400000; // the API takes no longer part

type Chosen = { piece: Piece; part: Part };

/** Of each profile of a range the part, in its own time. */
function partsOf(pieces: Piece[], [from, until]: Part): Chosen[] {
  return pieces.filter(p => p.from_ms < until && p.until_ms > from).map(piece => ({ piece,
    part: [Math.max(0, Math.round(from - piece.from_ms)), Math.round(Math.min(until, piece.until_ms) - piece.from_ms)] as Part }));
}

/** A range as the API takes it: profiles from the first one on, and a part in that one's time. */
type Range = { id: number; through?: number; from: number; until: number };
function rangeOf(pieces: Piece[], part: Part): Range | null {
  const all = partsOf(pieces, part), first = all[0], last = all[all.length - 1];
  if (!first || !last) { return null; }
  const from = first.part[0], until = Math.round(last.piece.from_ms - first.piece.from_ms) + last.part[1];
  return { id: first.piece.id, through: all.length > 1 ? last.piece.id : undefined, from, until: Math.max(from + 1, Math.min(until, DAY_MS)) };
}

export function samplesView(v: View, nodes: Nodes, gone: AbortSignal): Shown {
  const label = v.label || USUAL, node = v.nodes.length === 1 ? v.nodes[0]! : "";
  const heading = h("div", {}), told = h("p", { class: "quiet", role: "status" }), notes = h("div", { class: "quiet" }), links = h("ul", { class: "flames" }), flame = h("div", { class: "flame-page" });
  const element = h("div", { class: "sampled" });
  let heat: Heat | null = null, chosen: Parts = { part: null, other: null }, drawn: Flame | null = null, metric = METRICS[0]!, title = "";
  let asking = new AbortController();
  const zero = (): number => secondsOf(heat!.started_at!);
  const at = (ms: number): string => {
    const rest = heat!.cell_ms < 1000 ? Math.floor(ms % 1000) : 0;
    return `${clock(zero() + ms / 1000, ms % 60000 !== 0)}${rest > 0 ? `.${String(rest).padStart(3, "0").replace(/0+$/, "")}` : ""}`;
  };
  const map = new HeatMap(parts => {
    chosen = parts;
    void draw().catch(error => {
      if (!asking.signal.aborted) { fill(flame, failed(error instanceof Error ? error.message : String(error))); }
    });
  }, "none", at);
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

  // To the map of what was chosen alone, where that shows more.
  function closer([from, until]: Part): (string | HTMLElement)[] {
    const begin = Math.floor(zero() + from / 1000), end = Math.max(begin + 1, Math.ceil(zero() + until / 1000));
    return heat!.cell_ms <= FINEST_MS ? []
      : [" ", h("a", { href: hrefOf({ from: begin, until: end }) }, `Look closer at ${stretch(begin, end, true)}`)];
  }

  // What was chosen; compared with the second range, if there is one.
  async function draw(): Promise<void> {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking, { part, other } = chosen, pieces = heat?.profiles ?? [];
    const all = part ? partsOf(pieces, part) : [], range = part && rangeOf(pieces, part), before = other && rangeOf(pieces, other);
    fill(links, ...all.slice(0, MOST_LINKS).map(link), all.length > MOST_LINKS ? h("li", {}, `and ${all.length - MOST_LINKS} more`) : null);
    fill(told, ...!part ? ["A range that is chosen on the map is drawn here."] : !range ? ["No profile is of that time."]
      : [`Drawn is ${at(part[0])} to ${at(part[1])}, of profile${range.through ? `s ${range.id} to ${range.through}` : ` ${range.id}`}` +
         `${!other ? "" : before ? `, compared with ${at(other[0])} to ${at(other[1])}` : "; no profile is of the other range"}.`, ...closer(part)]);
    if (!range) {
      drawn?.destroy();
      drawn = null;
      fill(notes);
      fill(flame);
      return;
    }
    const data = await get<ProfileData>(`profiles/${range.id}`, { through: range.through, part_from: range.from, part_until: range.until,
      ...(before ? { before: before.id, before_through: before.through, before_part_from: before.from, before_part_until: before.until } : {}) }, signal);
    fill(notes, h("details", {}, h("summary", {}, data.notes[0] ?? ""), ...data.notes.slice(1).map(note => h("p", {}, note))));
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
      fill(element, heading, h("div", { class: "flame-bar" }, h("label", {}, "Hot are ", by)), map.element, told, notes, links, flame);
    }
    map.show(heat, chosen);
    await draw();
  }

  return {
    element, live: false, load,
    title: () => title,
    step: () => 3600,
    back: () => hrefOf({ view: "", label: "" }),
  };
}
