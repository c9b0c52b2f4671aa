// SPDX-License-Identifier: Apache-2.0
// What is shown where there is nothing to show, or where it cannot be trusted: what it is, and what to do next.
import { hrefOf, type View } from "./address";
import type { Finding, Nodes, Table } from "./api";
import { type Child, h } from "./dom";
import { moment, secondsOf, stretch } from "./times";

function state(title: string, ...what: Child[]): HTMLElement {
  return h("section", { class: "state" }, h("h1", {}, title), ...what);
}

/** Nobody was ever traced. */
export function noNode(): HTMLElement {
  const host = location.hostname.includes(":") ? location.hostname : location.hostname || "127.0.0.1";
  return state("No node yet",
    h("p", {}, "Attach one that runs, from a shell on its machine. Tracing begins when it is attached, and ends with Ctrl-C:"),
    h("pre", {}, `kprof attach shop@${host} --collector ${host}:4711 --cookie-file ~/.erlang.cookie`),
    h("p", {}, "4711 is the usual port of the collector: take what it was started with (--listen). ",
      "kprof doctor says what is missing where it does not work."));
}

/** There are nodes, and not one request of them. */
export function noRequest(nodes: string[]): HTMLElement {
  return state("Connected, and nothing begins a request",
    h("p", {}, nodes.join(", "), nodes.length === 1 ? " is" : " are", " known, but no request of them has ended yet."),
    h("p", {}, "Where requests come in, kprof wants to know the function that they begin with:"),
    h("pre", {}, "kprof attach NODE --entry my_handler:handle/2"),
    h("p", {}, "kprof doctor NODE says which entries fit what runs there."));
}

/** Nothing in this stretch, but elsewhere. */
export function nothingHere(from: number, until: number, nodes: Nodes, v: View): HTMLElement {
  const length = until - from, last = nodes.last_s ?? until;
  return state("Nothing in this stretch",
    h("p", {}, `From ${stretch(from, until)} no request${v.identities.length + v.nodes.length > 0 ? " of what is chosen" : ""} ended that kprof knows of.`),
    h("p", {}, h("a", { href: hrefOf({ from: Math.max(1, last - length), until: last, last: 0 }) },
      `To the last stretch that has something, up to ${moment(last, true)}`)),
    v.identities.length > 0 ? h("p", {}, h("a", { href: hrefOf({ identities: [] }) }, "To all identities")) : null,
    v.nodes.length > 0 ? h("p", {}, h("a", { href: hrefOf({ nodes: [] }) }, "To all nodes")) : null);
}

export function failed(why: string): HTMLElement {
  return state("This cannot be shown", h("p", {}, why), h("p", {}, h("a", { href: "/" }, "To the overview")));
}

// -- trust ----------------------------------------------------------------------------------------

const WORST: Record<string, string> = { ok: "ok", unclear: "unclear", lossy: "not trusted", paused: "paused" };

export function trustWord(table: Table): string {
  return WORST[table.ledger.verdict ?? "ok"] ?? String(table.ledger.verdict);
}

/** Why, since when, and what to do. */
export function findings(list: Finding[]): HTMLElement {
  if (list.length === 0) {
    return h("p", {}, "No message was lost, and every request is complete.");
  }
  return h("div", {}, ...list.map(f => h("div", { class: `finding ${f.level}` },
    h("h3", {}, f.title ?? f.kind, f.since ? h("small", {}, ` since ${moment(secondsOf(f.since), true)}`) : null),
    f.text ? h("p", {}, f.text) : null,
    f.counts.length ? h("ul", {}, ...f.counts.map(c => h("li", {}, c.text))) : null,
    f.meaning ? h("p", {}, f.meaning) : null,
    f.advice ? h("p", {}, h("b", {}, "What to do: "), f.advice) : null)));
}
