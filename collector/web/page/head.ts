// SPDX-License-Identifier: Apache-2.0
// The head line: which node, which stretch, is it live, how it looks. It stays on every page.
import { type Against, go, hrefOf, isLive, RANGES, stretchOf, type View, view } from "./address";
import { get, type Mark, type Nodes, type Table } from "./api";
import { markText } from "./charts";
import { fill, h } from "./dom";
import { called } from "./identities";
import { span } from "./numbers";
import { pick } from "./pick";
import { clock, inUtc, moment, setUtc, stretch, zone } from "./times";

/** Away from a request or a profile: what is chosen in the head line is of the numbers. */
const NUMBERS = { slow: 0, profile: 0, before: 0 };

/** Marks that the comparison offers: the latest ones. */
const SINCE = 8;

const SCHEMES = ["auto", "light", "dark"] as const;

function scheme(): string {
  return localStorage.getItem("kprof.scheme") ?? "auto";
}

/** Colours as somebody chose them, or as the system has them. */
export function applyScheme(): void {
  const now = scheme();
  now === "auto" ? document.documentElement.removeAttribute("data-scheme")
    : document.documentElement.setAttribute("data-scheme", now);
  dispatchEvent(new Event("kprof:look"));
}

export class Head {
  readonly element = h("header", { class: "head" });
  private readonly dot = h("span", { class: "live", role: "status" });
  private readonly compare = h("select", { id: "compare", "aria-label": "Compare with another stretch", onchange: () => this.chosen() });
  private known = "";
  private readonly news = h("button", { class: "news", hidden: true });

  /** take: shows what is new, when somebody asks for it. */
  constructor(take: () => void) {
    this.news.addEventListener("click", take);
  }

  show(nodes: Nodes): void {
    const v = view(), [from, until] = stretchOf(v), length = until - from;
    const range: HTMLSelectElement = h("select", { id: "range", "aria-label": "Time", onchange: () => go({ ...NUMBERS, last: Number(range.value) }) },
      v.last ? null : h("option", { value: "0", selected: true }, isLive(v) ? `since ${moment(from, true)}` : stretch(from, until)),
      ...this.ranges(v.last).map(([s, text]) => h("option", { value: s, selected: s === v.last }, text)));
    const move = (by: number): string => hrefOf({ ...NUMBERS, from: Math.max(1, from + by), until: until + by, last: 0 });
    const focused = this.element.contains(document.activeElement) ? document.activeElement?.id : "";
    fill(this.element,
      h("a", { class: "name", href: hrefOf({ view: "", identities: [], tiers: [], find: "", slow: 0, profile: 0, before: 0, sort: "" }), id: "home" }, "kprof"),
      h("a", { class: "view", href: hrefOf({ ...NUMBERS, view: "nodes", sort: "" }), id: "nodes",
               "aria-current": v.view === "nodes" && !v.slow && !v.profile ? "page" : null }, "nodes"),
      ...this.picks(v, nodes), ...(v.view === "nodes" ? [] : [range,
      h("a", { class: "button", href: move(-length), id: "earlier", "aria-label": "Earlier", title: "Earlier" }, "‹"),
      this.later(v, until + length <= Date.now() / 1000 ? move(length) : "", length), v.view === "samples" ? null : this.compare]),
      h("span", { class: "grow" }), this.news, this.dot, this.schemes(), this.zones());
    this.know([]);
    if (focused) { document.getElementById(focused)?.focus(); }
  }

  /** href: the stretch behind; "": it is not over yet. What goes up to now has none behind it. */
  private later(v: View, href: string, length: number): HTMLElement {
    const live = isLive(v), up = hrefOf({ ...NUMBERS, last: this.nearest(length) });
    return h("a", { class: "button", id: "later", href: live ? null : href || up, role: live ? "link" : null, "aria-disabled": live && "true",
      tabindex: live ? 0 : null, // the focus stays where it led to now
      "aria-label": "Later", title: live ? "This goes up to now" : href ? "Later" : "Up to now" }, "›");
  }

  private picks(v: View, nodes: Nodes): HTMLElement[] {
    const clusters = nodes.clusters.length === 0 && v.clusters.length === 0 ? []
      : [pick({ id: "cluster", all: "all clusters", many: "clusters", chosen: v.clusters, names: async () => nodes.clusters,
                take: clusters => go({ ...NUMBERS, clusters, nodes: [] }) })];
    const all = [
      pick({ id: "node", all: "all nodes", many: "nodes", chosen: v.nodes, names: async () => nodes.nodes, take: nodes => go({ ...NUMBERS, nodes }) }),
      pick({ id: "identity", all: "all identities", many: "identities", chosen: v.identities, called, take: identities =>
        go({ ...NUMBERS, identities, sort: "" }), names: async () => {
        const [from, until] = stretchOf(v);
        const table = await get<Table>("table", { from, until, node: v.nodes }, new AbortController().signal);
        return table.identities.filter(i => i !== "_total");
      } }),
      pick({ id: "tier", all: "all tiers", many: "tiers", chosen: v.tiers, names: async () => nodes.tiers, take: tiers => go({ ...NUMBERS, tiers }) }),
    ];
    return [...clusters, ...(v.view !== "" ? all.slice(0, 1) : all)];
  }

  /** What happened in the stretch: it can be compared with what was before that. */
  know(marks: Mark[]): void {
    const v = view(), [from, until] = stretchOf(v), now = v.compare;
    const since = marks.filter(m => (m.kind === "note" || m.kind === "reloads") && m.at_s > from && m.at_s < until - 10)
      .slice(-SINCE);
    const key = JSON.stringify([now, v.last, v.from, since]);
    if (key === this.known || document.activeElement === this.compare) { return; }
    this.known = key;
    const one = (value: Against, text: string): HTMLElement => h("option", { value, selected: value === now }, text);
    fill(this.compare, one("", "compare with: nothing"), one("before", "compare: the time before"), one("day", "compare: yesterday"),
      one("week", "compare: last week"), since.length > 0 ? h("optgroup", { label: "since (its time, and as long before)" },
        ...since.map(m => h("option", { value: `since ${m.at_s}` }, `since ${clock(m.at_s, false)} ${markText(m)}`))) : null);
  }

  private chosen(): void {
    const value = this.compare.value;
    const v = view();
    value.startsWith("since ") ? go({ ...NUMBERS, from: Number(value.slice(6)), until: isLive(v) ? 0 : v.until, last: 0, compare: "before" })
      : go({ ...NUMBERS, compare: value as Against });
  }

  // What the address asks for may be none of ours.
  private ranges(last: number): [number, string][] {
    return last && !RANGES.some(([s]) => s === last) ? [...RANGES, [last, `last ${span(last)}`]] : RANGES;
  }

  private nearest(length: number): number {
    return (RANGES.find(([s]) => s >= length) ?? RANGES[RANGES.length - 1])[0];
  }

  private schemes(): HTMLElement {
    const button = h("button", { id: "scheme", title: "Colours: as the system has them, light, or dark", onclick: () => {
      localStorage.setItem("kprof.scheme", SCHEMES[(SCHEMES.indexOf(scheme() as "auto") + 1) % SCHEMES.length]);
      applyScheme();
      button.textContent = `colours: ${scheme()}`;
    } }, `colours: ${scheme()}`);
    return button;
  }

  private zones(): HTMLElement {
    return h("button", { id: "zone", title: "Times: of this place, or UTC", onclick: () => {
      setUtc(!inUtc());
      dispatchEvent(new Event("kprof:view"));
    } }, zone());
  }

  /** gone: since when, in seconds; null: the collector is there. */
  state(live: boolean, gone: number | null): void {
    this.dot.className = `live ${gone !== null ? "gone" : live ? "on" : ""}`;
    this.dot.textContent = gone !== null ? `no collector: shown is from ${clock(gone, true)}, trying again` : live ? "live" : "not live";
  }

  /** How many seconds wait to be shown; 0: none. */
  waiting(seconds: number): void {
    this.news.hidden = seconds < 1;
    this.news.textContent = `${seconds} s new`;
  }
}
