// SPDX-License-Identifier: Apache-2.0
// Lists of what was kept: slow requests and profiles.
import { hrefOf } from "./address";
import type { Profile, Request } from "./api";
import { type Child, fill, h } from "./dom";
import { count, duration } from "./numbers";
import { called } from "./identities";
import { moment, secondsOf } from "./times";

/** The slowest in one line: each a link. */
export function slowLine(requests: Request[], one: boolean): HTMLElement {
  return h("section", { class: "line" }, h("h2", {}, one ? "Its slow requests" : "Slowest now"),
    requests.length === 0 ? h("p", { class: "quiet" }, "No request of this stretch was kept.") :
    h("ul", {}, ...requests.map(r => h("li", {}, h("a", { href: hrefOf({ slow: r.id, sort: "" }) },
      one ? "" : `${called(r.identity)} `, h("b", {}, duration(r.duration_us))), ` ${moment(secondsOf(r.started_at), true)}`,
      r.outcome === "ok" ? null : h("span", { class: "error" }, ` ${r.outcome}`)))));
}

/** How much a profile has seen. */
export function looked(p: Profile): string {
  return p.kind === "samples" ? `samples, ${count(p.looks)} ${p.looks === 1 ? "look" : "looks"}`
    : `${count(p.requests)} ${p.requests === 1 ? "request" : "requests"}`;
}

export function profileLine(profiles: Profile[], identity: string): HTMLElement {
  return h("section", { class: "line" }, h("h2", {}, identity ? "Its flame graphs" : "Profiles"),
    profiles.length === 0 ? h("p", { class: "quiet" }, "None yet. ", h("code", {}, "kprof flame NODE"), " makes one.") :
    h("ul", {}, ...profiles.map(p => h("li", {}, h("a", { href: hrefOf({ profile: p.id, sort: "" }) }, p.name || `profile ${p.id}`),
      `, ${looked(p)}, ${moment(secondsOf(p.started_at), false)}`))));
}

/** A list whose rows change as time goes on: one that is as before is left alone, with the focus that it may have. The latest comes first. */
export class LiveList<T extends { id: number }> {
  private readonly rows = new Map<number, HTMLElement>();

  constructor(private readonly list: HTMLElement, private readonly draw: (item: T) => Child[]) {}

  show(items: T[]): void {
    this.list.hidden = items.length === 0;
    for (const item of [...items].sort((a, b) => a.id - b.id)) {
      let row = this.rows.get(item.id);
      if (!row) {
        row = h("li", {});
        this.rows.set(item.id, row);
        this.list.prepend(row);
      }
      const now = JSON.stringify(item);
      if (row.dataset.now !== now) {
        const focused = row.contains(document.activeElement) && document.activeElement instanceof HTMLButtonElement;
        row.dataset.now = now;
        fill(row, ...this.draw(item));
        if (focused) { row.querySelector("button")?.focus(); }
      }
    }
    for (const [id, row] of this.rows) {
      if (!items.some(item => item.id === id)) {
        row.remove();
        this.rows.delete(id);
      }
    }
  }
}
