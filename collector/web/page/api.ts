// SPDX-License-Identifier: Apache-2.0
// What the server answers. Names in it come from nodes that nobody vouches for: they are texts, and nothing else.
import { view } from "./address";

export type Verdict = "ok" | "unclear" | "lossy" | "paused" | null;
export type Values = (number | null)[];
/** exported: what many collectors have sent to one place, without notes and profiles. */
export type Nodes = { version: string; exported: boolean; clusters: string[]; nodes: string[]; tiers: string[]; first_s: number | null; last_s: number | null };
export type Row = {
  identity: string; tier: string; requests: number; calls: number; errors: number; mean_us: number; max_us: number;
  p50_us: number; p90_us: number; p99_us: number; p999_us: number; total_us: number; self_us: number; wait_us: number; async_us: number;
  per_request_us: number; wait_per_request_us: number; measured_us: number; mailbox_us: number | null; run_queue_us: number | null;
  waiting_per_request_us: number | null; // null: rows of an older version, where it is in the self time of who waits
};
export type Finding = {
  kind: string; level: "note" | "warning" | "problem"; since: string | null; title: string | null; text: string | null;
  counts: { text: string }[]; meaning: string | null; advice: string | null;
};
export type Table = {
  from: string | null; until: string | null; resolution_s: number; tiers: string[]; identities: string[]; rows: Row[];
  ledger: { verdict: Verdict; requests_complete: number }; findings: Finding[];
};
export type Tier = { name: string; self_us: Values; wait_us: Values; async_us: Values; waiting_us: Values };
export type Mark = {
  at_s: number; kind: string; amount: number; text?: string; node?: string | null;
  of?: string; from_s?: number; label?: string; trigger?: string; // of a profile, as which it ends
};
export type Trigger = {
  name: string; trigger: string; tier?: string; above: number; for_ms: number; high_water: boolean; every_ms: number; seconds: number; hz: number;
  label: string; began: number; again_ms: number; value?: number; process?: string;
};
/** A run of stack sampling that goes on now. */
export type RunNow = { node: string; name: string; label: string; trigger: string; since_s: number; stands: boolean };
export type Series = {
  start_s: number; step_s: number; resolution_s: number; count: number; requests: Values; errors: Values; mean_us: Values;
  p50_us: Values; p90_us: Values; p99_us: Values; max_us: Values; uncovered_us: Values; waiting_us: Values; parallel_us: Values;
  tiers: Tier[]; verdicts: Verdict[];
  heat: { scale: number; counts: number[][] }; marks: Mark[];
};
export type Request = {
  id: number; node: string; identity: string; started_at: string; duration_us: number; outcome: string; reason: string;
  complete: boolean; spans: number; kept_spans: number; remote: boolean; origin: string | null;
  trace_id: string | null; parent_span_id: string | null; // of who has asked for it
};
export type Span = {
  span: number; parent: number | null; node: string; pid: string; name: string; start_us: number; duration_us: number; self_us: number;
  wait_us: number; measured: boolean; mailbox_us: number | null; run_queue_us: number | null; gc_us: number; off_cpu_us: number;
  async: boolean; outcome: string;
};
export type Slow = {
  request: Request; spans: Span[]; parts: { id: number; node: string; duration_us: number; remote: boolean }[];
  profiles: { id: number; ended_at: string; requests: number }[];
};
export type Profile = {
  id: number; kind: string; name: string; label: string; trigger: string; node: string; started_at: string; duration_ms: number;
  requests: number;
  looks: number; // of samples
};
export type Piece = { id: number; from_ms: number; until_ms: number };
/** A profile of samples by time; lists have a value a cell, column behind column. */
export type Heat = {
  profile: number | null; // null: of several, from the begin of the day on, UTC
  profiles?: Piece[]; started_at?: string; length_ms: number; metric: string; unit: string; adds_up: boolean; from_ms: number; column_ms: number; cell_ms: number;
  columns: number; rows: number; lowest: number; highest: number; states: string[]; values: number[]; looks: number[]; unanswered: number[];
};

export type NodeState = {
  node: string; connected: boolean; since: string; otp: string; version: string; state: string; requests_per_s: number;
  messages_per_s: number; cost_us_per_s: number; one_in: number; per_second: number; level_ppm: number; trips: number; complete: number;
  incomplete: number; expired: number; dropped_messages: number; decode_errors: number; unmarked_calls: number; stacks?: string;
  history: { at: string; text: string }[];
};
export type FlameTold = {
  requests: number; incomplete: number; others: number; unseen: number; partly: number; messages: number; functions: number;
  processes: number; text: string; profile?: number; reason?: string;
};
export type FlameState = {
  id: number; node: string; identity: string; begun_s: number; requests: number; seconds: number; over: boolean; told: FlameTold | null;
};
export type RunTold = {
  samples: number; unchanged: number; unanswered: number; held_ms: number; late_ms: number; cost_us: number; processes: number;
  profile?: number; reason?: string; text?: string;
};
/** A run of stack sampling. */
export type RunState = {
  id: number; node: string; by: string; hz: number; top: number; application: string; registered: string; pid: string; begun_s: number;
  seconds: number; ran_s: number; over: boolean; told: RunTold | null;
};
export type LookProcess = {
  pid: string; name: string; initial_call: string; application: string; status: string; function: string; reductions: number; queue: number;
  queue_change: number; samples: number; unanswered: number; memory?: number; memory_change?: number;
};
export type LookFunction = { name: string; self: number; total: number };
/** What a node does now; run: the kept run of sampling of which it is, 0: none. */
export type Look = {
  by: string; run: number; ran_s: number; told: RunTold | null;
  view: { duration_us: number; samples: number; busy: number; processes: LookProcess[]; functions: LookFunction[] } | null;
};
/** What the collector knows now; of a database alone neither nodes, flames nor runs. */
export type State = {
  collector: boolean; control: boolean; listen_address?: string; listen_port?: number; nodes?: NodeState[]; flames?: FlameState[];
  runs?: RunState[];
};

/** The server said no: status 0 where it is not there. */
export class Failed extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

/** A number before and after; sure: more than chance. */
export type Change = { before: number; after: number; sure: boolean };
export type Part = {
  kind: string; tier: string | null; before_us: number; after_us: number;
};
export type Compared = {
  identity: string; tier: string; calls_before: number; calls_after: number; mean_us: Change; p50_us: Change; p90_us: Change;
  p99_us: Change; p999_us: Change; errors: Change; per_s: Change; waiting: "apart" | "in_self" | "mixed";
  parts: Part[];
};
export type Comparison = {
  before: { from: string | null; until: string | null; verdict: Verdict }; after: { verdict: Verdict }; rows: Compared[];
  slow: { identity: string; requests: number; mean_us: number; slow_us: number;
          parts: { kind: string; tier: string | null; mean_us: number; slow_us: number }[] }[];
};
/** A call of a tier below others; parent is a place in the list. */
export type Path = {
  tier: string; parent: number | null; depth: number; calls: number; errors: number; mean_us: number; max_us: number;
  self_per_request_us: number; wait_per_request_us: number; waiting_per_request_us: number | null; per_request_us: number;
  wait_us: number; measured_us: number; mailbox_us: number | null; run_queue_us: number | null;
};

type Question = Record<string, string | number | string[] | undefined>;

/** One answer of /api/v1/PATH. What is "" or undefined is not asked for; a list stands as often as it is long. */
export async function get<T>(path: string, question: Question, signal: AbortSignal): Promise<T> {
  const p = new URLSearchParams();
  view().clusters.forEach(one => p.append("cluster", one));
  for (const [key, value] of Object.entries(question)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== "") { p.append(key, String(one)); }
    }
  }
  const query = p.toString();
  let response: Response;
  try {
    response = await fetch(`/api/v1/${path}${query ? `?${query}` : ""}`, { signal });
  } catch (error) {
    if (signal.aborted) { throw error; }
    throw new Failed(0, "the collector does not answer");
  }
  if (response.status === 401) { location.assign(`/login?to=${encodeURIComponent(location.pathname + location.search)}`); }
  if (!response.ok) {
    const told = await response.json().catch(() => null) as { error?: string } | null;
    throw new Failed(response.status, told?.error ?? `the collector answers ${response.status}`);
  }
  return await response.json() as T;
}
