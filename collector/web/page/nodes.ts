// SPDX-License-Identifier: Apache-2.0
// The nodes as they are now: what each does, what tracing it costs, and what can be ordered of it.
import { hrefOf, type View } from "./address";
import { get, type Nodes, type NodeState, type State } from "./api";
import { h, fill } from "./dom";
import { NodeCard } from "./node";
import type { Shown } from "./shown";
import { noNode } from "./states";

const EVERY_MS = 2000;

function orders(state: State): HTMLElement | null {
  return state.control ? null : h("p", { class: "quiet" },
    "Nodes can be paused, sampled, traced fully and looked at live from here, too, where the collector is started with ",
    h("code", {}, "--http-allow-control"), " and ", h("code", {}, "--http-token-file"), ". From a shell: ",
    h("code", {}, "kprof trace"), ", ", h("code", {}, "kprof sample"), ", ", h("code", {}, "kprof top"), " and ", h("code", {}, "kprof flame"), ".");
}

function databaseAlone(nodes: Nodes): HTMLElement {
  return h("section", { class: "state" }, h("h1", {}, "No collector here"),
    h("p", {}, nodes.exported ? "This page is of what collectors have exported: each one's own page has its nodes as they are now."
      : "This page is of a database alone: nobody knows what its nodes do now."),
    nodes.nodes.length > 0 ? h("p", {}, "It has data of ", nodes.nodes.join(", "), ".") : null,
    nodes.exported ? null : h("p", {}, "The page of ", h("code", {}, "kprof-collector --http 4712"), " has the nodes as they are."));
}

/** Who does not trace comes first, then by name. */
function sorted(all: NodeState[]): NodeState[] {
  const rank = (n: NodeState): number => n.connected ? n.state === "tracing" ? 1 : 0 : 2;
  return [...all].sort((a, b) => rank(a) - rank(b) || a.node.localeCompare(b.node));
}

export function nodesView(v: View, known: Nodes, gone: AbortSignal): Shown {
  const cards = new Map<string, NodeCard>();
  const list = h("div", { class: "nodes" });
  const told = h("div", {});
  const element = h("div", {}, h("h1", { class: "spoken" }, "Nodes"), list, told);
  let count = 0, tracing = 0;

  function show(state: State): void {
    const all = sorted((state.nodes ?? []).filter(n => v.nodes.length === 0 || v.nodes.includes(n.node)));
    count = all.length;
    tracing = all.filter(n => n.connected && n.state === "tracing").length;
    if (!state.collector) {
      fill(element, databaseAlone(known));
    } else if (all.length === 0) {
      fill(list, noNode(state));
    } else {
      for (const [name, card] of cards) {
        if (!all.some(n => n.node === name)) {
          card.element.remove();
          cards.delete(name);
        }
      }
      if (cards.size === 0) { fill(list); }
      for (const node of all) {
        let card = cards.get(node.node);
        if (!card) {
          card = new NodeCard(node.node, state.control, () => void load(gone).catch(() => undefined), gone, known.tiers,
                              all.length === 1);
          cards.set(node.node, card);
          list.append(card.element);
        }
        card.show(node, (state.flames ?? []).filter(f => f.node === node.node), (state.runs ?? []).filter(r => r.node === node.node));
      }
      if (!told.firstChild) { fill(told, orders(state)); }
    }
  }

  async function load(signal: AbortSignal): Promise<void> {
    show(await get<State>("state", {}, signal));
  }

  const timer = setInterval(() => {
    if (document.visibilityState === "visible") { void load(gone).catch(() => undefined); }
  }, EVERY_MS);
  gone.addEventListener("abort", () => clearInterval(timer));

  return {
    element, live: true, load,
    title: () => `nodes: ${tracing} of ${count} tracing`,
    step: () => 10,
    back: () => hrefOf({ view: "" }),
  };
}
