// SPDX-License-Identifier: Apache-2.0
// The page: its head line, and the view that the address asks for below.
import { onView, view, visit } from "./address";
import { Failed, get, type Nodes } from "./api";
import { knowTiers } from "./colours";
import { fill, h } from "./dom";
import { applyScheme, Head } from "./head";
import { listen } from "./live";
import { nodesView } from "./nodes";
import { overview } from "./overview";
import { profile } from "./profile";
import type { Shown } from "./shown";
import { samplesView } from "./samples";
import { slow } from "./slow";
import { failed } from "./states";

const LEAST_S = 5;        // between two looks at what is new
const RETRY_MS = 3000;

const main = h("main", { id: "view", tabindex: "-1" });
const head = new Head(() => void load(true));
let shown: Shown | null = null;
let asking = new AbortController();
let loadedAt = 0;         // ms
let loadedAs: number | null = null;
let goneSince: number | null = null;
let busy = false;

/** gone: when the view makes room for another one. */
function viewOf(nodes: Nodes, gone: AbortSignal): Shown {
  const v = view();
  return v.slow ? slow(v, gone) : v.profile ? profile(v, gone) : v.view === "nodes" ? nodesView(v, nodes, gone)
    : v.view === "samples" ? samplesView(v, nodes, gone) : overview(v, nodes, gone);
}

/** Somebody looks at something closely: what is there stays as it is. */
function held(): boolean {
  return document.visibilityState === "hidden" || (shown?.busy?.() ?? false)
    || main.matches(":has(.plot:hover, .plot:focus-within, .strip:hover, .strip:focus-within, .notes form:focus-within, .rows:hover, .rows:focus-within, .changes:hover, .trust[open], .kept:hover, .calls:hover)");
}

function tell(): void {
  head.state(shown?.live ?? false, goneSince);
}

async function load(again: boolean): Promise<void> {
  const controller = asking, now = shown;
  if (!now || busy) { return; }
  busy = true;
  try {
    await now.load(controller.signal);
    loadedAt = Date.now();
    loadedAs = Math.floor(loadedAt / 1000);
    goneSince = null;
    document.title = `${now.title()} · kprof`;
    head.waiting(0);
    head.know(now.marks?.() ?? []);
  } catch (error) {
    if (controller.signal.aborted) { return; }
    if (error instanceof Failed && (error.status === 0 || again)) {
      goneSince = loadedAs ?? Math.floor(Date.now() / 1000);
      setTimeout(() => void load(true), RETRY_MS);
    } else {
      fill(now.element, failed(error instanceof Error ? error.message : String(error)));
    }
  } finally {
    if (controller === asking) { busy = false; }
    tell();
  }
}

async function show(): Promise<void> {
  asking.abort();
  const controller = asking = new AbortController();
  busy = false;
  try {
    const nodes = await get<Nodes>("nodes", {}, controller.signal);
    knowTiers(nodes.tiers);
    shown = viewOf(nodes, controller.signal);
    head.show(nodes);
    await load(false);
    fill(main, shown.element);
    dispatchEvent(new Event("kprof:look"));
  } catch (error) {
    if (!controller.signal.aborted) {
      goneSince ??= Math.floor(Date.now() / 1000);
      tell();
      if (!main.firstChild) { fill(main, failed(error instanceof Error ? error.message : String(error))); }
      setTimeout(() => { if (controller === asking) { void show(); } }, RETRY_MS);
    }
  }
}

function written(): void {
  if (!shown?.live || busy) { return; }
  const age = (Date.now() - loadedAt) / 1000;
  if (age >= Math.max(LEAST_S, shown.step() / 2)) {
    held() ? head.waiting(Math.floor(age)) : void load(true);
  }
}

applyScheme();
fill(document.body, h("a", { class: "skip", href: "#view" }, "To the content"), head.element, main);
onView(step => {
  if (!(step && shown?.moved?.(view()))) { void show(); }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyScheme);
addEventListener("keydown", event => {
  const back = shown?.back();
  if (event.key === "Escape" && !event.defaultPrevented && back) { visit(back); }
});
listen(written, now => {
  if (now === "gone" && goneSince === null) {
    goneSince = loadedAs ?? Math.floor(Date.now() / 1000);
  } else if (now === "live" && goneSince !== null) {
    goneSince = null;
    shown ? void load(true) : void show();
  }
  tell();
});
void show();
