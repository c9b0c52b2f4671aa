// SPDX-License-Identifier: Apache-2.0
// Where the time of a stretch goes, of all requests or of one identity: facts, charts, a table, and what was kept.
import { go, hrefOf, stretchOf, type View } from "./address";
import { get, type Nodes, type Profile, type Request, type Series, type Table, type Values } from "./api";
import { Charts } from "./charts";
import { fill, h } from "./dom";
import { duration, percent, rate } from "./numbers";
import { called, identitiesOf, identityColumns, tierColumns } from "./identities";
import { profileLine, slowLine } from "./lists";
import type { Shown } from "./shown";
import { findings, noNode, noRequest, nothingHere, trustWord } from "./states";
import { TimeAxis } from "./plot";
import { showTable, sparkline } from "./table";
import { stretch } from "./times";

const TREND_POINTS = 30;
const MOST_TRENDS = 30;   // identities that get a trend: each is a question of its own
const TRENDS_AGE_S = 30;

type Data = { table: Table; series: Series; slow: Request[]; profiles: Profile[]; from: number; until: number };

export function overview(v: View, nodes: Nodes, gone: AbortSignal): Shown {
  const axis = new TimeAxis((from, until) => go({ from: Math.round(from), until: Math.round(until), last: 0 }));
  const charts = new Charts(axis, gone);
  const facts = h("section", { class: "facts", "aria-label": "In short" });
  const trust = h("details", { class: "trust" });
  const rows = h("section", { class: "rows" });
  const kept = h("div", { class: "kept" });
  const element = h("div", {});
  let trends = new Map<string, Values>(), trendsAt = 0;
  let data: Data | null = null;

  async function ask(signal: AbortSignal): Promise<Data> {
    const [from, until] = stretchOf(v);
    const what = { from, until, node: v.node, identity: v.identity };
    const [table, series, slow, profiles] = await Promise.all([
      get<Table>("table", what, signal), get<Series>("series", { ...what, points: 240 }, signal),
      get<{ requests: Request[] }>("slow", { ...what, most: v.identity ? 20 : 6 }, signal),
      get<{ profiles: Profile[] }>("profiles", { node: v.node, identity: v.identity, most: 6 }, signal)]);
    return { table, series, slow: slow.requests, profiles: profiles.profiles, from, until };
  }

  // One after the other: the charts of others go first.
  async function askTrends(d: Data, signal: AbortSignal): Promise<void> {
    if (v.identity || Date.now() / 1000 - trendsAt < TRENDS_AGE_S) { return; }
    trendsAt = Date.now() / 1000;
    for (const identity of d.table.identities.slice(0, MOST_TRENDS)) {
      const s = await get<Series>("series", { from: d.from, until: d.until, node: v.node, identity, points: TREND_POINTS }, signal);
      trends.set(identity, s.p99_us);
    }
    showRows(d);
  }

  function showFacts(d: Data): void {
    const whole = d.table.rows.find(r => r.tier === "_total" && r.identity === (v.identity || "_total"));
    const told = d.series.requests.filter(n => n !== null).length * d.series.step_s || 1;
    const fact = (name: string, value: string, ...more: (Node | null)[]): HTMLElement =>
      h("div", { class: "fact" }, h("span", {}, name), h("b", {}, value), ...more);
    fill(facts, h("h1", { class: v.identity ? "" : "spoken" }, v.identity ? called(v.identity) : "All requests"),
      fact("requests", rate((whole?.requests ?? 0) / told), sparkline(d.series.requests)),
      fact("p50", duration(whole?.p50_us ?? null)), fact("p90", duration(whole?.p90_us ?? null)),
      fact("p99", duration(whole?.p99_us ?? null)), fact("longest", duration(whole?.max_us ?? null)),
      fact("errors", whole?.errors ? percent(whole.errors / whole.requests) : "0"), trust);
    const open = trust.open, word = trustWord(d.table), worst = d.table.findings.find(f => f.level !== "note");
    fill(trust, h("summary", {}, "trust: ", h("b", { class: word === "ok" ? "" : "error" }, word),
      worst && word !== "ok" ? h("span", { class: "why" }, ` ${worst.counts[0]?.text ?? worst.title ?? ""}`) : null),
      findings(d.table.findings));
    trust.open = open;
  }

  function showRows(d: Data): void {
    const all = identitiesOf(d.table);
    const told = d.series.requests.filter(n => n !== null).length * d.series.step_s || 1;
    const whole = all.find(i => i.name === v.identity)?.whole;
    if (whole) {
      showTable(rows, { caption: "Tiers of this identity", columns: tierColumns(whole), rows: d.table.rows.filter(
        r => r.identity === v.identity && r.tier !== "_total"), sort: v.sort || "self", resort: sort => go({ sort }), key: r => r.tier });
    } else {
      const some = all.filter(i => i.name !== "_total");
      showTable(rows, { caption: "Identities", columns: identityColumns(some, d.table.tiers, told, trends), rows: some,
        sort: v.sort || "p99", resort: sort => go({ sort }), key: i => i.name });
    }
  }

  function show(d: Data): void {
    if (nodes.nodes.length === 0) {
      fill(element, noNode());
    } else if (nodes.first_s === null) {
      fill(element, noRequest(nodes.nodes));
    } else if (!d.table.rows.some(r => r.tier === "_total")) {
      fill(element, nothingHere(d.from, d.until, nodes, v.identity));
    } else {
      if (!charts.element.isConnected) { fill(element, facts, charts.element, rows, kept); }
      charts.show(d.series, d.from, d.until);
      showFacts(d);
      showRows(d);
      fill(kept, slowLine(d.slow), profileLine(d.profiles));
    }
  }

  return {
    element,
    live: v.last > 0,
    async load(signal) {
      data = await ask(signal);
      show(data);
      void askTrends(data, signal).catch(() => undefined); // the next time, then
    },
    title: () => {
      const whole = data?.table.rows.find(r => r.tier === "_total" && r.identity === (v.identity || "_total"));
      return [`${v.identity ? called(v.identity) : "all requests"}${whole ? ` p99 ${duration(whole.p99_us)}` : ""}`,
              data ? stretch(data.from, data.until) : "", v.node].filter(Boolean).join(", ");
    },
    step: () => data?.series.step_s ?? 10,
    back: () => v.identity ? hrefOf({ identity: "", sort: "" }) : null,
  };
}
