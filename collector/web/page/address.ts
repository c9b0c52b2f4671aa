// SPDX-License-Identifier: Apache-2.0
// What is shown, as the address has it: a link shows the same, and back and forward work.
import { addLook, type Look, lookOf } from "./flame/look";

export type View = {
  view: "" | "nodes" | "samples"; // "": the numbers of a stretch; samples: those of a label as one map
  label: string;
  clusters: string[];   // none: all of them; so for the next three
  nodes: string[];
  identities: string[];
  tiers: string[];      // that charts and tables show; what the others take stands as one
  last: number;         // seconds up to now; 0: from is told
  from: number;
  until: number;        // 0: up to now, as it moves on
  compare: Against;     // another stretch that each number is compared with; "": with none
  find: string;         // only identities whose name has this
  slow: number;         // a request; 0: none
  profile: number;
  before: number;       // a profile that this one is compared with
  sort: string;         // the table's column; with "-" before it the other way round
  look: Look;           // what is chosen in the profile's flame graph
  drawn: Drawn;         // what of the profile is drawn
};
/** What the API takes of it: how it is grouped; of samples a part, and that of what it is compared with, in ms since their begins. */
const DRAWN = ["group", "part_from", "part_until", "before_part_from", "before_part_until"] as const;
export type Drawn = Partial<Record<typeof DRAWN[number], string>>;
export type Against = "" | "before" | "day" | "week";
type Lists = "clusters" | "nodes" | "identities" | "tiers";

export const RANGES: [number, string][] = [
  [1800, "last 30 min"], [3600, "last hour"], [10800, "last 3 h"], [21600, "last 6 h"], [86400, "last 24 h"], [604800, "last 7 days"],
  [2592000, "last 30 days"]];

const SHORTEST = 60; // seconds, since something that was just now

/** What the API takes of names at most. */
export const MOST_NAMES = 16;

const USUAL: View = { view: "", label: "", clusters: [], nodes: [], identities: [], tiers: [], last: 3600, from: 0, until: 0, compare: "", find: "", slow: 0, profile: 0,
                      before: 0, sort: "", look: {}, drawn: {} };
const LISTS: [Lists, string][] = [["clusters", "cluster"], ["nodes", "node"], ["identities", "identity"], ["tiers", "tier"]];

/** What the address asks for. */
export function view(): View {
  const p = new URLSearchParams(location.search);
  const number = (name: string): number => {
    const value = Number(p.get(name) ?? 0);
    return Number.isSafeInteger(value) && value > 0 ? value : 0;
  };
  const names = (name: string): string[] => [...new Set(p.getAll(name).filter(Boolean))].slice(0, MOST_NAMES);
  const from = number("from"), until = number("until"), compare = p.get("compare") ?? "";
  const bounded = from > 0 && (until > from || until === 0);
  return {
    view: p.get("view") === "nodes" ? "nodes" : p.get("view") === "samples" ? "samples" : "", label: p.get("label") ?? "", clusters: names("cluster"), nodes: names("node"), identities: names("identity"), tiers: names("tier"),
    last: bounded ? 0 : number("last") || USUAL.last, from: bounded ? from : 0, until: bounded ? until : 0,
    compare: compare === "before" || compare === "day" || compare === "week" ? compare : "", find: p.get("find") ?? "",
    slow: number("slow"), profile: number("profile"), before: number("before"), sort: p.get("sort") ?? "",
    look: lookOf(p), drawn: Object.fromEntries(DRAWN.filter(key => p.get(key)).map(key => [key, p.get(key)!])) };
}

/** The address of the present view with some of it changed. */
export function hrefOf(change: Partial<View>): string {
  const v = { ...view(), ...change };
  if (change.last) { v.from = v.until = 0; }
  if (change.from) { v.last = 0; }
  if (v.view !== "samples") { v.label = ""; }
  const p = new URLSearchParams();
  for (const [list, name] of LISTS) { v[list].forEach(one => p.append(name, one)); }
  for (const key of Object.keys(USUAL) as (keyof View)[]) {
    if (typeof v[key] !== "object" && v[key] !== USUAL[key] && v[key] !== 0) { p.set(key, String(v[key])); }
  }
  if (v.profile) {
    for (const key of DRAWN) {
      if (v.drawn[key]) { p.set(key, v.drawn[key]!); }
    }
    addLook(p, v.look);
  }
  const query = p.toString();
  return query ? `/?${query}` : "/";
}

/** The one identity that is shown; "": all, or several. */
export function identityOf(v: View): string {
  return v.identities.length === 1 ? v.identities[0] : "";
}

/** Another view, which back leaves again. */
export function go(change: Partial<View>): void {
  visit(hrefOf(change));
}

export function visit(href: string): void {
  history.pushState(null, "", href);
  dispatchEvent(new Event("kprof:view"));
}

/** Calls show for each change of the view, and takes over the clicks on links of the page. step: by back or forward. */
export function onView(show: (step: boolean) => void): void {
  addEventListener("popstate", () => show(true));
  addEventListener("kprof:view", () => show(false));
  document.addEventListener("click", event => {
    const link = (event.target as Element).closest?.("a[href^='/']");
    if (link && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey
        && !link.hasAttribute("download")) {
      event.preventDefault();
      visit(link.getAttribute("href") as string);
    }
  });
}

/** The stretch that is compared with. */
export function beforeOf(v: View, from: number, until: number): [number, number] {
  const back = v.compare === "day" ? 86400 : v.compare === "week" ? 604800 : until - from;
  return [Math.max(0, from - back), Math.max(1, until - back)];
}

/** Another address for the same view, which stays as it is. step: back leads to the one that it had. */
export function rename(change: Partial<View>, step = false): void {
  const href = hrefOf(change);
  if (href === location.pathname + location.search) { return; }
  step ? history.pushState(null, "", href) : history.replaceState(null, "", href);
}

/** Whether its stretch goes up to now, and moves on with it. */
export function isLive(v: View): boolean {
  return v.last > 0 || v.until === 0;
}

/** The stretch in seconds. */
export function stretchOf(v: View): [number, number] {
  const now = Math.floor(Date.now() / 1000);
  return v.last ? [now - v.last, now] : [v.from, v.until || Math.max(v.from + SHORTEST, now)];
}
