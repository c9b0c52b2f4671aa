// SPDX-License-Identifier: Apache-2.0
// The tables of a stretch: its identities with their tiers, or the tiers of one identity.
import type { Compared, Row, Table, Values } from "./api";
import { hrefOf } from "./address";
import { type Changes, delta, errorShare, shift, waited } from "./compare";
import { type Child, h } from "./dom";
import { count, duration, percent, rate } from "./numbers";
import { bar, type Column, sparkline } from "./table";

export type Identity = { name: string; whole: Row; tiers: Map<string, Row>; waiting: number };

/** What people call an identity: some names are kprof's own. */
export function called(identity: string): string {
  return identity === "undefined" ? "(not named)" : identity === "_other" ? "(past the cap)" : identity === "_remote" ? "(for other nodes)"
    : identity;
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
    if (identity) { identity.waiting += waitingOf(row); }
  }
  return [...out.values()];
}

/** A cell with its change below. */
function changed(cell: Child, change: HTMLElement | null): Child {
  return change ? h("span", {}, cell, change) : cell;
}

const changeOf = (row: Compared | undefined): number => row ? row.mean_us.after - row.mean_us.before : 0;

/** Waiting for a tier, per request; of an older version's rows how long its calls waited. */
const waitingOf = (r: Row): number => r.waiting_per_request_us ?? r.wait_per_request_us;

type Waited = Pick<Row, "wait_us" | "measured_us" | "mailbox_us" | "run_queue_us">;

/** How it is known how long these waited, in a word or two. */
export function knownBy(rows: Waited[]): string {
  const sum = (of: (r: Waited) => number): number => rows.reduce((all, r) => all + of(r), 0);
  const wait = sum(r => r.wait_us), measured = sum(r => r.measured_us);
  return measured === 0 ? "estimated" : measured >= wait ? "measured" : `${percent(measured / wait)} measured`;
}

/** The same, and where they waited as far as that is known. */
export function knownOf(row: Waited): string {
  const apart = row.mailbox_us === null || row.run_queue_us === null ? ""
    : `: ${percent(row.mailbox_us / row.wait_us)} in mailboxes, ${percent(row.run_queue_us / row.wait_us)} in the run queue`;
  return row.wait_us > 0 ? knownBy([row]) + apart : "";
}

const selfPerRequest = (i: Identity, tier: string): number =>
  i.whole.calls > 0 ? (i.tiers.get(tier)?.self_us ?? 0) / i.whole.calls : 0;

const QUANTILES: ["p50" | "p90" | "p99" | "p999", string][] = [["p50", "p50"], ["p90", "p90"], ["p99", "p99"], ["p999", "p99.9"]];

/** Columns of percentiles, where it is narrow of the one that counts. of: whose they are. */
function quantiles<T>(of: string, rowOf: (line: T) => Row, now: (line: T) => Compared | undefined): Column<T>[] {
  return QUANTILES.map(([key, name]): Column<T> => ({
    key, head: `${name}${of}`, wide: key !== "p99", value: line => rowOf(line)[`${key}_us`],
    cell: line => changed(duration(rowOf(line)[`${key}_us`]), delta(now(line)?.[`${key}_us`], "quantile")) }));
}

/** Tiers that have a column of their own: those in which most time goes. The others are on the identity's page. */
const COLUMNS = 6;

export function identityColumns(all: Identity[], tiers: string[], seconds: number, trends: Map<string, Values>,
                                changes: Changes | null): Column<Identity>[] {
  const now = (i: Identity): Compared | undefined => changes?.of(i.name, "_total");
  const part = (i: Identity, tier: string): HTMLElement | null => {
    const found = now(i)?.parts.find(p => p.kind === "self" && p.tier === tier);
    return found ? shift(found.before_us, found.after_us) : null;
  };
  const spent = (tier: string): number => all.reduce((sum, i) => sum + (i.tiers.get(tier)?.self_us ?? 0), 0);
  const shown = tiers.length <= COLUMNS ? tiers : [...tiers].sort((a, b) => spent(b) - spent(a)).slice(0, COLUMNS);
  return [
    { key: "identity", head: "Identity", text: true, value: i => i.name,
      cell: i => h("a", { href: hrefOf({ identities: [i.name], find: "", slow: 0, profile: 0, sort: "" }) }, called(i.name)) },
    { key: "rate", head: "Requests", value: i => i.whole.requests, cell: i => changed(rate(i.whole.requests / seconds), delta(now(i)?.per_s, "none", rate, false)) },
    ...quantiles<Identity>("", i => i.whole, now),
    ...(changes ? [{ key: "change", head: "Mean, change", value: (i: Identity) => changeOf(now(i)), cell: (i: Identity) => {
      const row = now(i);
      return row ? changed(duration(i.whole.mean_us), delta(row.mean_us, "mean")) : "–";
    } }] : []),
    ...shown.map((tier): Column<Identity> => ({
      key: `t:${tier}`, head: tier, wide: true, title: `Time of ${tier} itself, per request`, value: i => selfPerRequest(i, tier),
      cell: i => i.tiers.has(tier)
        ? changed(bar(duration(selfPerRequest(i, tier)), selfPerRequest(i, tier) / i.whole.mean_us, tier), part(i, tier)) : h("span", { class: "quiet" }, "–") })),
    { key: "waiting", head: `Waiting, ${knownBy(all.flatMap(i => [...i.tiers.values()]))}`, wide: true,
      title: "Until calls begin in other processes, per request",
      value: i => i.waiting,
      cell: i => {
        const row = now(i), change = row && row.parts.length > 0 ? waited(row) : null;
        return changed(bar(duration(i.waiting), i.waiting / i.whole.mean_us, null), change && shift(...change));
      } },
    { key: "errors", head: "Errors", value: i => i.whole.errors,
      cell: i => h("span", { class: i.whole.errors ? "error" : "quiet", title: `${i.whole.errors} of ${i.whole.requests}` },
                   i.whole.errors ? percent(i.whole.errors / i.whole.requests) : "0", delta(now(i)?.errors, "errors", errorShare)) },
    { key: "trend", head: "p99, trend", wide: true, value: i => i.whole.p99_us, cell: i => sparkline(trends.get(i.name) ?? []) },
  ];
}

/** Of one identity: a line for each tier. */
export function tierColumns(whole: Row, changes: Changes | null): Column<Row>[] {
  const now = (r: Row): Compared | undefined => changes?.of(r.identity, r.tier);
  const parts = changes?.of(whole.identity, "_total")?.parts;
  const part = (r: Row): HTMLElement | null => {
    const found = parts?.find(p => p.kind === "self" && p.tier === r.tier);
    return found ? shift(found.before_us, found.after_us) : null;
  };
  const self = (r: Row): number => whole.calls > 0 ? r.self_us / whole.calls : 0;
  return [
    { key: "tier", head: "Tier", text: true, value: r => r.tier, cell: r => r.tier },
    { key: "calls", head: "Calls per request", value: r => r.calls, cell: r => count(whole.calls ? r.calls / whole.calls : 0) },
    { key: "self", head: "Own time per request", value: self, 
      cell: r => changed(bar(duration(self(r)), self(r) / whole.mean_us, r.tier), part(r)) },
    { key: "wait", head: "Waiting per request", wide: true, value: waitingOf,
      cell: r => h("span", { title: knownOf(r) }, bar(duration(waitingOf(r)), waitingOf(r) / whole.mean_us, null),
                   r.wait_us > 0 ? h("small", { class: "quiet" }, knownBy([r])) : null) },
    ...quantiles<Row>(" of a call", r => r, now),
    { key: "max", head: "Longest", wide: true, value: r => r.max_us, cell: r => duration(r.max_us) },
    { key: "errors", head: "Errors", value: r => r.errors,
      cell: r => h("span", { class: r.errors ? "error" : "quiet" }, count(r.errors), delta(now(r)?.errors, "errors", errorShare)) },
  ];
}
