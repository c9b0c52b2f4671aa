// SPDX-License-Identifier: Apache-2.0
// The tables of a stretch: its identities with their tiers, or the tiers of one identity.
import type { Row, Table, Values } from "./api";
import { hrefOf } from "./address";
import { h } from "./dom";
import { count, duration, percent, rate } from "./numbers";
import { bar, type Column, sparkline } from "./table";

export type Identity = { name: string; whole: Row; tiers: Map<string, Row>; waiting: number };

/** What people call an identity: some names are kprof's own. */
export function called(identity: string): string {
  return identity === "undefined" ? "(not named)" : identity === "_other" ? "(past the cap)" : identity;
}

/** Each identity's rows; of the tiers what is theirs alone. */
export function identitiesOf(table: Table): Identity[] {
  const out = new Map<string, Identity>();
  for (const row of table.rows.filter(r => r.tier === "_total")) {
    out.set(row.identity, { name: row.identity, whole: row, tiers: new Map(), waiting: 0 });
  }
  for (const row of table.rows.filter(r => r.tier !== "_total")) {
    const identity = out.get(row.identity);
    identity?.tiers.set(row.tier, row);
    if (identity) { identity.waiting += row.wait_per_request_us; }
  }
  return [...out.values()];
}

const selfPerRequest = (i: Identity, tier: string): number =>
  i.whole.calls > 0 ? (i.tiers.get(tier)?.self_us ?? 0) / i.whole.calls : 0;

/** Tiers that have a column of their own: those in which most time goes. The others are on the identity's page. */
const COLUMNS = 6;

export function identityColumns(all: Identity[], tiers: string[], seconds: number, trends: Map<string, Values>): Column<Identity>[] {
  const spent = (tier: string): number => all.reduce((sum, i) => sum + (i.tiers.get(tier)?.self_us ?? 0), 0);
  const shown = tiers.length <= COLUMNS ? tiers : [...tiers].sort((a, b) => spent(b) - spent(a)).slice(0, COLUMNS);
  return [
    { key: "identity", head: "Identity", text: true, value: i => i.name,
      cell: i => h("a", { href: hrefOf({ identity: i.name, slow: 0, profile: 0, sort: "" }) }, called(i.name)) },
    { key: "rate", head: "Requests", value: i => i.whole.requests, cell: i => rate(i.whole.requests / seconds) },
    { key: "p50", head: "p50", wide: true, value: i => i.whole.p50_us, cell: i => duration(i.whole.p50_us) },
    { key: "p99", head: "p99", value: i => i.whole.p99_us, cell: i => duration(i.whole.p99_us) },
    ...shown.map((tier): Column<Identity> => ({
      key: `t:${tier}`, head: tier, wide: true, title: `Time of ${tier} itself, per request`, value: i => selfPerRequest(i, tier),
      cell: i => i.tiers.has(tier)
        ? bar(duration(selfPerRequest(i, tier)), selfPerRequest(i, tier) / i.whole.mean_us, tier) : h("span", { class: "quiet" }, "–") })),
    { key: "waiting", head: "Waiting", wide: true, title: "Until calls begin in other processes, per request",
      value: i => i.waiting, cell: i => bar(duration(i.waiting), i.waiting / i.whole.mean_us, null) },
    { key: "errors", head: "Errors", value: i => i.whole.errors,
      cell: i => h("span", { class: i.whole.errors ? "error" : "quiet", title: `${i.whole.errors} of ${i.whole.requests}` },
                   i.whole.errors ? percent(i.whole.errors / i.whole.requests) : "0") },
    { key: "trend", head: "p99, trend", wide: true, value: i => i.whole.p99_us, cell: i => sparkline(trends.get(i.name) ?? []) },
  ];
}

/** Of one identity: a line for each tier. */
export function tierColumns(whole: Row): Column<Row>[] {
  const self = (r: Row): number => whole.calls > 0 ? r.self_us / whole.calls : 0;
  return [
    { key: "tier", head: "Tier", text: true, value: r => r.tier, cell: r => r.tier },
    { key: "calls", head: "Calls per request", value: r => r.calls, cell: r => count(whole.calls ? r.calls / whole.calls : 0) },
    { key: "self", head: "Own time per request", value: self, cell: r => bar(duration(self(r)), self(r) / whole.mean_us, r.tier) },
    { key: "wait", head: "Waiting per request", wide: true, value: r => r.wait_per_request_us,
      cell: r => bar(duration(r.wait_per_request_us), r.wait_per_request_us / whole.mean_us, null) },
    { key: "p50", head: "p50 of a call", wide: true, value: r => r.p50_us, cell: r => duration(r.p50_us) },
    { key: "p99", head: "p99 of a call", value: r => r.p99_us, cell: r => duration(r.p99_us) },
    { key: "max", head: "Longest", wide: true, value: r => r.max_us, cell: r => duration(r.max_us) },
    { key: "errors", head: "Errors", value: r => r.errors,
      cell: r => h("span", { class: r.errors ? "error" : "quiet" }, count(r.errors)) },
  ];
}
