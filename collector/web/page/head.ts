// SPDX-License-Identifier: Apache-2.0
// The head line: which node, which stretch, is it live, how it looks. It stays on every page.
import { go, hrefOf, RANGES, stretchOf, view } from "./address";
import type { Nodes } from "./api";
import { fill, h } from "./dom";
import { clock, inUtc, setUtc, stretch, zone } from "./times";

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
  private readonly news = h("button", { class: "news", hidden: true });

  /** take: shows what is new, when somebody asks for it. */
  constructor(take: () => void) {
    this.news.addEventListener("click", take);
  }

  show(nodes: Nodes): void {
    const v = view(), [from, until] = stretchOf(v), length = until - from;
    const node: HTMLSelectElement = h("select", { id: "node", "aria-label": "Node", onchange: () => go({ node: node.value }) },
      h("option", { value: "" }, "all nodes"), ...nodes.nodes.map(n => h("option", { value: n, selected: n === v.node }, n)));
    const range: HTMLSelectElement = h("select", { id: "range", "aria-label": "Time", onchange: () => go({ last: Number(range.value) }) },
      v.last ? null : h("option", { value: "0", selected: true }, stretch(from, until)),
      ...this.ranges(v.last).map(([s, text]) => h("option", { value: s, selected: s === v.last }, text)));
    const move = (by: number): string => hrefOf({ from: Math.max(1, from + by), until: until + by, last: 0 });
    const later = until + length <= Date.now() / 1000 ? move(length) : hrefOf({ last: v.last || this.nearest(length) });
    const focused = this.element.contains(document.activeElement) ? document.activeElement?.id : "";
    fill(this.element,
      h("a", { class: "name", href: hrefOf({ identity: "", slow: 0, profile: 0, sort: "" }), id: "home" }, "kprof"), node, range,
      h("a", { class: "button", href: move(-length), id: "earlier", "aria-label": "Earlier", title: "Earlier" }, "‹"),
      h("a", { class: "button", href: later, id: "later", "aria-label": "Later", title: "Later" }, "›"),
      h("span", { class: "grow" }), this.news, this.dot, this.schemes(), this.zones());
    if (focused) { document.getElementById(focused)?.focus(); }
  }

  // What the address asks for may be none of ours.
  private ranges(last: number): [number, string][] {
    return last && !RANGES.some(([s]) => s === last) ? [...RANGES, [last, `last ${last} s`]] : RANGES;
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
