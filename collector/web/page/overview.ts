// SPDX-License-Identifier: Apache-2.0
// Where the time of a stretch goes, of all requests, of some identities or of one: facts, charts, tables, and what was kept.
import { beforeOf, go, hrefOf, identityOf, isLive, rename, stretchOf, type View } from "./address";
import { type Comparison, get, type Nodes, type Path, type Profile, type Request, type Row, type RunNow, type Series, type Table,
         type Values } from "./api";
import { Charts } from "./charts";
import { Changes, comparedWith, delta, errorShare, explained, slowOnes, type Test } from "./compare";
import { fill, h } from "./dom";
import { duration, percent, rate, span } from "./numbers";
import { called, identitiesOf, identityColumns, tierColumns } from "./identities";
import { profileLine, slowLine } from "./lists";
import { Notes } from "./notes";
import { Paths } from "./paths";
import type { Shown } from "./shown";
import { findings, noNodeYet, noRequest, nothingHere, trustWord } from "./states";
import { TimeAxis } from "./plot";
import { showTable, sparkline } from "./table";
import { secondsOf, stretch } from "./times";

const TREND_POINTS = 30;
const MOST_TRENDS = 30;   // identities that get a trend: each is a question of its own
const TRENDS_AGE_S = 30;

type Data = {
  table: Table; series: Series; slow: Request[]; profiles: Profile[]; paths: Path[]; changes: Changes | null; from: number; until: number;
  now: RunNow[];
};

/** Of which time numbers are: that of whole buckets, which may be more than was asked for. */
function coveredBy(table: Table): string {
  return table.from && table.until ? `Rounded to whole buckets of ${span(table.resolution_s)}: `
    + `${stretch(secondsOf(table.from), secondsOf(table.until), true)}. Percentiles are within 1.1 %.` : "";
}

export function overview(v: View, nodes: Nodes, gone: AbortSignal): Shown {
  const identity = identityOf(v), whose = identity || "_total";
  const axis = new TimeAxis((from, until) => go({ from: Math.round(from), until: Math.round(until), last: 0 }));
  const charts = new Charts(axis, v.tiers, gone);
  const facts = h("section", { class: "facts", "aria-label": "In short" });
  const change = h("div", { class: "changes" });
  const trust = h("details", { class: "trust" });
  const rows = h("section", { class: "rows", tabindex: "0", "aria-label": identity ? "Tiers" : "Identities" });
  const paths = new Paths();
  const notes = new Notes(v.nodes.length === 1 ? v.nodes[0] : "", nodes.exported, gone);
  const kept = h("div", { class: "kept" });
  const covers = h("p", { class: "quiet covers" });
  const element = h("div", {});
  const trends = new Map<string, Values>();
  let trendsAt = 0, find = v.find;
  let data: Data | null = null;
  const look = h("input", { type: "search", id: "find", value: find, placeholder: "search identities (f)", "aria-label": "Search identities",
    oninput: () => {
      find = look.value;
      rename({ find });
      if (data) { showRows(data); }
    } });
  const bar = h("div", { class: "rows-bar" }, h("h2", {}, "Identities"), look);

  async function ask(signal: AbortSignal): Promise<Data> {
    const [from, until] = stretchOf(v), who = { node: v.nodes, identity: v.identities }, what = { from, until, ...who };
    const [before_from, before_until] = beforeOf(v, from, until);
    const [table, series, slow, profiles, paths, comparison, sampling] = await Promise.all([
      get<Table>("table", what, signal), get<Series>("series", { ...what, points: 240 }, signal),
      get<{ requests: Request[] }>("slow", { ...what, most: identity ? 20 : 6 }, signal),
      get<{ profiles: Profile[] }>("profiles", { ...who, most: 6 }, signal),
      identity ? get<{ paths: Path[] }>("paths", what, signal) : { paths: [] },
      v.compare ? get<Comparison>("compare", { ...what, before_from, before_until }, signal) : null,
      isLive(v) ? get<{ runs: RunNow[] }>("sampling", {}, signal) : { runs: [] }]);
    return { table, series, slow: slow.requests, profiles: profiles.profiles, paths: paths.paths,
             changes: comparison && new Changes(comparison), from, until,
             now: sampling.runs.filter(r => v.nodes.length === 0 || v.nodes.includes(r.node)) };
  }

  // One after the other: the charts of others go first.
  async function askTrends(d: Data, signal: AbortSignal): Promise<void> {
    if (identity || Date.now() / 1000 - trendsAt < TRENDS_AGE_S) { return; }
    trendsAt = Date.now() / 1000;
    for (const one of d.table.identities.slice(0, MOST_TRENDS)) {
      const s = await get<Series>("series", { from: d.from, until: d.until, node: v.nodes, identity: one, points: TREND_POINTS }, signal);
      trends.set(one, s.p99_us);
    }
    showRows(d);
  }

  const wholeOf = (d: Data): Row | undefined => d.table.rows.find(r => r.tier === "_total" && r.identity === whose);
  const told = (d: Data): number => d.series.requests.filter(n => n !== null).length * d.series.step_s || 1;

  function title(): string {
    return identity ? called(identity) : v.identities.length > 0 ? v.identities.map(called).join(", ") : "all requests";
  }

  function showFacts(d: Data): void {
    const whole = wholeOf(d), changed = d.changes?.of(whose, "_total");
    const fact = (name: string, value: string, ...more: (Node | null)[]): HTMLElement =>
      h("div", { class: "fact" }, h("span", {}, name), h("b", {}, value), ...more);
    const time = (c: "p50_us" | "p90_us" | "p99_us" | "p999_us", test: Test): HTMLElement | null => delta(changed?.[c], test);
    fill(facts, h("h1", { class: v.identities.length > 0 ? "" : "spoken" }, title()),
      fact("requests", rate((whole?.requests ?? 0) / told(d)), sparkline(d.series.requests), delta(changed?.per_s, "none", rate, false)),
      fact("p50", duration(whole?.p50_us ?? null), time("p50_us", "quantile")),
      fact("p90", duration(whole?.p90_us ?? null), time("p90_us", "quantile")),
      fact("p99", duration(whole?.p99_us ?? null), time("p99_us", "quantile")),
      fact("p99.9", duration(whole?.p999_us ?? null), time("p999_us", "quantile")),
      fact("longest", duration(whole?.max_us ?? null)),
      fact("errors", whole?.errors ? percent(whole.errors / whole.requests) : "0", delta(changed?.errors, "errors", errorShare)), trust);
    fill(change, ...(d.changes ? [explained(changed), slowOnes(d.changes.all, whose), comparedWith(d.changes.all)] : []));
    const open = trust.open, word = trustWord(d.table), worst = d.table.findings.find(f => f.level !== "note");
    fill(trust, h("summary", {}, "trust: ", h("b", { class: word === "ok" ? "" : "error" }, word),
      worst && word !== "ok" ? h("span", { class: "why" }, ` ${worst.counts[0]?.text ?? worst.title ?? ""}`) : null),
      findings(d.table.findings));
    trust.open = open;
  }

  function showRows(d: Data): void {
    const whole = identity ? wholeOf(d) : undefined;
    const shown = (tier: string): boolean => v.tiers.length === 0 || v.tiers.includes(tier);
    if (whole) {
      showTable(rows, { caption: "Tiers of this identity", columns: tierColumns(whole, d.changes), rows: d.table.rows.filter(
        r => r.identity === identity && r.tier !== "_total" && shown(r.tier)), sort: v.sort || "self", resort: sort => go({ sort }),
        key: r => r.tier });
      paths.show(d.paths.filter(p => p.calls > 0 || p.self_per_request_us > 0), whole.mean_us);
    } else {
      const wanted = find.toLowerCase();
      const some = identitiesOf(d.table).filter(i => i.name !== "_total" && called(i.name).toLowerCase().includes(wanted));
      showTable(rows, { caption: "Identities", columns: identityColumns(some, d.table.tiers.filter(shown), told(d), trends, d.changes),
        rows: some, sort: v.sort || "p99", resort: sort => go({ sort }), key: i => i.name });
      if (some.length === 0) { rows.append(h("p", { class: "quiet" }, "No identity has that in its name.")); }
    }
  }

  // A node can be sampled that no request is known of.
  function showProfiles(d: Data): HTMLElement | null {
    fill(kept, profileLine(d.profiles, identity));
    return d.profiles.length > 0 ? kept : null;
  }

  function show(d: Data): void {
    if (nodes.nodes.length === 0) {
      fill(element, noNodeYet(gone));
    } else if (nodes.first_s === null) {
      fill(element, noRequest(nodes.nodes), showProfiles(d));
    } else if (!d.table.rows.some(r => r.tier === "_total")) {
      fill(element, nothingHere(d.from, d.until, nodes, v), showProfiles(d));
    } else {
      if (!charts.element.isConnected) {
        fill(element, facts, change, charts.element, notes.element, identity ? null : bar, rows, covers, identity ? paths.element : null, kept);
      }
      charts.show(d.series, d.now, d.from, d.until);
      notes.show(d.series.marks);
      showFacts(d);
      showRows(d);
      fill(covers, coveredBy(d.table));
      fill(kept, slowLine(d.slow, Boolean(identity)), profileLine(d.profiles, identity));
    }
  }

  element.addEventListener("keydown", event => {
    if (event.key === "Escape" && event.target === look && look.value) {
      look.value = "";
      look.dispatchEvent(new Event("input"));
      event.preventDefault();
    }
  });
  addEventListener("keydown", event => {
    if (event.key === "f" && look.isConnected && !(event.target instanceof HTMLInputElement) && !event.ctrlKey && !event.metaKey
        && !event.altKey) {
      look.focus();
      event.preventDefault();
    }
  }, { signal: gone });

  return {
    element,
    live: isLive(v),
    async load(signal) {
      data = await ask(signal);
      show(data);
      void askTrends(data, signal).catch(() => undefined); // the next time, then
    },
    title: () => {
      const whole = data ? wholeOf(data) : undefined;
      return [`${title()}${whole ? ` p99 ${duration(whole.p99_us)}` : ""}`,
              data ? stretch(data.from, data.until) : "", v.nodes.join(" and ")].filter(Boolean).join(", ");
    },
    step: () => data?.series.step_s ?? 10,
    back: () => v.identities.length > 0 ? hrefOf({ identities: [], sort: "" }) : null,
    busy: () => axis.selection !== null,
    marks: () => data?.series.marks ?? [],
  };
}
