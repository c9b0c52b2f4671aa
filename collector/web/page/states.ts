// SPDX-License-Identifier: Apache-2.0
// What is shown where there is nothing to show, or where it cannot be trusted: what it is, and what to do next.
import { hrefOf, type View } from "./address";
import { get, type Finding, type Nodes, type State, type Table } from "./api";
import { type Child, fill, h } from "./dom";
import { moment, secondsOf, stretch } from "./times";

function state(title: string, ...what: Child[]): HTMLElement {
  return h("section", { class: "state" }, h("h1", {}, title), ...what);
}

/** Where nodes connect to: an address that the browser's machine reaches, too, where the collector listens on all of its host. */
function collectorOf(s: State): string {
  const everywhere = ["0.0.0.0", "::"].includes(s.listen_address ?? "");
  const address = everywhere ? location.hostname.replace(/^\[|\]$/g, "") : s.listen_address ?? "";
  return `${address.includes(":") ? `[${address}]` : address}:${s.listen_port}`;
}

/** Nobody was ever traced. */
export function noNode(s: State): HTMLElement {
  if (!s.collector) {
    return state("No node yet",
      h("p", {}, "This page is of a database alone, and nothing is in it. What traces a node into it, until Ctrl-C:"),
      h("pre", {}, "kprof attach shop@127.0.0.1 --db FILE --cookie-file ~/.erlang.cookie"),
      h("p", {}, "FILE is the database that kprof serve was given."));
  }
  return state("No node yet",
    h("p", {}, "Attach one that runs, from a shell on its machine. Tracing begins when it is attached, and ends with Ctrl-C:"),
    h("pre", {}, `kprof attach shop@127.0.0.1 --collector ${collectorOf(s)} --cookie-file ~/.erlang.cookie`),
    h("p", {}, "kprof doctor says what is missing where it does not work."));
}

/** The same, once the server has said where it listens. */
export function noNodeYet(gone: AbortSignal): HTMLElement {
  const place = h("div", {});
  void get<State>("state", {}, gone).then(s => fill(place, noNode(s))).catch(() => undefined);
  return place;
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
