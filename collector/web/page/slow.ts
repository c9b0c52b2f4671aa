// SPDX-License-Identifier: Apache-2.0
// A request that was kept whole: its calls, and what is known of each.
import { hrefOf, type View } from "./address";
import { get, type Slow } from "./api";
import { asLanes, asTree, type Call, callsOf, failure, type Sum, sums } from "./calls";
import { tierClass } from "./colours";
import { fill, h } from "./dom";
import { count, duration } from "./numbers";
import { called } from "./identities";
import type { Shown } from "./shown";
import { bar, type Column, showTable } from "./table";
import { Waterfall } from "./waterfall";
import { moment, secondsOf, zone } from "./times";

export function slow(v: View, gone: AbortSignal): Shown {
  const element = h("div", {});
  let data: Slow | null = null;
  return {
    element, live: false,
    async load(signal) {
      data = await get<Slow>(`slow/${v.slow}`, {}, signal);
      fill(element, ...draw(data, gone));
    },
    title: () => data ? `${called(data.request.identity)} ${duration(data.request.duration_us)}, `
      + `${moment(secondsOf(data.request.started_at), true)}, ${data.request.node}` : "a slow request",
    step: () => 3600,
    back: () => hrefOf({ slow: 0 }),
  };
}

function draw(data: Slow, gone: AbortSignal): HTMLElement[] {
  const r = data.request, calls = callsOf(data), closed = new Set<number>();
  const beside = h("div", {}), found = h("span", { class: "quiet", role: "status" });
  let lanes = false;
  const show = (): void => waterfall.show(lanes ? asLanes(calls) : asTree(calls, closed), lanes);
  const waterfall = new Waterfall(Math.max(r.duration_us, 0.001), r.node, call => fill(beside, ...callFacts(call, r.node)), (call, open) => {
    open ? closed.delete(call.span) : closed.add(call.span);
    show();
  }, gone);
  const look = h("input", { type: "search", id: "find", placeholder: "find (f)", "aria-label": "Find calls by name, process or node",
    oninput: () => {
      const n = waterfall.find(look.value);
      found.textContent = look.value ? `${n} found` : "";
    } }) as HTMLInputElement;
  look.addEventListener("keydown", event => {
    if (event.key === "Escape" || event.key === "Enter") {
      if (event.key === "Escape") {
        look.value = "";
        waterfall.find("");
        found.textContent = "";
      }
      waterfall.focus();
      event.preventDefault();
    }
  });
  const how = h("button", { "aria-pressed": "false", onclick: () => {
    lanes = !lanes;
    how.setAttribute("aria-pressed", String(lanes));
    show();
  } }, "by process");
  const totals = h("div", {});
  const table = sums(calls);
  showTable(totals, { caption: "Tiers of this request", columns: sumColumns(r.duration_us), rows: table, sort: "self", resort: null,
                      key: s => s.name });
  const main = h("div", { class: "waterfall" },
    h("div", {}, h("div", { class: "controls" }, look, found, how,
      h("button", { onclick: () => waterfall.zoomBy(0.5, waterfall.middle()), "aria-label": "Zoom in" }, "+"),
      h("button", { onclick: () => waterfall.zoomBy(2, waterfall.middle()), "aria-label": "Zoom out" }, "−"),
      h("button", { onclick: () => waterfall.reset() }, "all of it"), legend(calls, r.node)), waterfall.element),
    h("aside", { "aria-label": "Beside the calls" }, totals, beside));
  main.addEventListener("keydown", event => {
    if (event.key === "f" && !(event.target instanceof HTMLInputElement) && !event.ctrlKey && !event.metaKey) {
      look.focus();
      event.preventDefault();
    }
  });
  show();
  const longest = calls.reduce<Call | null>((most, c) => !most || c.self_us > most.self_us ? c : most, null);
  if (longest) { waterfall.begin(longest); }
  return [facts(data), main];
}

const callCount = (n: number): string => `${count(n)} call${n === 1 ? "" : "s"}`;

const askedBy = (span: string | null): (string | HTMLElement)[] => span === null ? [] : [", asked for by span ", h("code", {}, span)];

function facts(data: Slow): HTMLElement {
  const r = data.request, at = Math.floor(secondsOf(r.started_at));
  const elsewhere = data.spans.filter(s => s.node !== r.node), far = elsewhere.length, nodes = new Set(elsewhere.map(s => s.node)).size;
  return h("section", { class: "request-facts" },
    h("h1", {}, h("a", { href: hrefOf({ slow: 0, identities: [r.identity] }) }, called(r.identity)), ` ${duration(r.duration_us)}`),
    h("span", {}, `began ${moment(at, true)} ${zone()} on ${r.node}`),
    h("span", { class: r.outcome === "ok" ? "" : "error" }, r.outcome === "ok" ? "ok" : `failed: ${r.outcome}`),
    r.complete ? null : h("span", { class: "error" }, "cut: it had more calls than are kept"),
    h("span", { class: "quiet" }, r.spans > r.kept_spans ? `${count(r.kept_spans)} of ${callCount(r.spans)} kept` : callCount(r.spans),
      far > 0 ? `, and ${count(far)} on ${nodes > 1 ? `${nodes} other nodes` : "another node"}` : null),
    r.origin ? h("span", {}, `part of a request of ${r.origin}`) : null,
    r.trace_id ? h("span", {}, "in trace ", h("code", {}, r.trace_id), ...askedBy(r.parent_span_id)) : null,
    h("a", { href: hrefOf({ slow: 0, from: Math.max(1, at - 300), until: at + 300, last: 0 }) }, "what else happened then"),
    ...data.parts.map(p => h("a", { href: hrefOf({ slow: p.id }) },
      `${p.remote ? r.remote ? "another part of it" : "its part" : "the request itself"} on ${p.node}, ${duration(p.duration_us)}`)),
    ...data.profiles.map(p => h("a", { href: hrefOf({ slow: 0, profile: p.id }) }, `flame graph: profile ${p.id}`)),
    data.profiles.length === 0 ? h("span", { class: "quiet" }, "no flame graph yet: ", h("code", {}, `kprof flame ${r.node}`), " makes one") : null);
}

/** home: the request's node. */
function legend(calls: Call[], home: string): HTMLElement {
  const elsewhere = calls.some(c => c.node !== home), waits = calls.filter(c => c.wait_us > 0);
  const known = waits.every(c => !c.measured) ? "estimated" : waits.every(c => c.measured) ? "measured" : "measured in part";
  const one = (key: string, text: string): HTMLElement => h("span", { class: "item" }, h("i", { class: `key ${key}` }), text);
  return h("div", { class: "legend" }, one("wait", waits.length > 0 ? `waiting before, ${known}` : "waiting before"), one("critical", "critical path"), one("async", "nobody waits for it"),
           one("failed", "failed"), elsewhere ? one("remote", "on another node: about then, by its clock") : null, h("span", { class: "item" }, "full colour: share of its own time"));
}

function sumColumns(duration_us: number): Column<Sum>[] {
  return [
    { key: "name", head: "Tier", text: true, value: s => s.name, cell: s => s.name },
    { key: "calls", head: "Calls", value: s => s.calls, cell: s => count(s.calls) },
    { key: "self", head: "Itself", value: s => s.self_us, cell: s => bar(duration(s.self_us), s.self_us / duration_us, s.name) },
    { key: "wait", head: "Waiting", value: s => s.wait_us, cell: s => duration(s.wait_us) },
  ];
}

/** home: the request's own node. */
function callFacts(call: Call, home: string): HTMLElement[] {
  const above = [];
  for (let c: Call | null = call; c; c = c.above) { above.unshift(c); }
  const fact = (name: string, value: string): HTMLElement[] => [h("dt", {}, name), h("dd", {}, value)];
  return [h("h2", {}, h("i", { class: `key ${tierClass(call.name)}` }), call.name),
    h("dl", { class: "call-facts" }, ...fact("begins after", `${call.node === home ? "" : "about "}${duration(call.start_us)}`), ...fact("lasts", duration(call.duration_us)),
      ...fact("itself", duration(call.self_us)), ...fact(call.measured ? "waiting, measured" : "waiting before, estimated", duration(call.wait_us)),
      ...(call.mailbox_us === null ? [] : fact("in its mailbox", duration(call.mailbox_us))),
      ...(call.run_queue_us === null ? [] : fact("in the run queue", duration(call.run_queue_us))),
      ...(call.gc_us ? fact("garbage collection", duration(call.gc_us)) : []),
      ...(call.off_cpu_us ? fact("off the processor", duration(call.off_cpu_us)) : []),
      ...fact("process", call.pid), ...fact("node", call.node),
      ...fact("outcome", call.outcome === "open" ? "had not ended" : call.outcome),
      ...(call.async ? fact("asynchronous", "its caller did not wait") : []),
      ...(call.critical ? fact("critical path", "the request waited for it") : []),
      ...(failure(call) ? fact("failed", failure(call)) : [])),
    h("h3", {}, "Called through"),
    h("ol", { class: "chain" }, ...above.map(c => h("li", {}, `${c.name}, ${duration(c.duration_us)}, ${c.pid}${c.node === home ? "" : ` on ${c.node}`}`)))];
}
