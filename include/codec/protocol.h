// SPDX-License-Identifier: Apache-2.0
// The control protocol, the C side: its messages, who sends which when, and their names, fields and
// words. shim/src/link/kprof_protocol.erl is the shim's side. Unknown keys and types are ignored by
// both.
//
//   Where there is a secret, the four messages of net/auth.h come first: auth, challenge, answer,
//   proven.
//
//   shim -> collector
//     hello           role "control" or "data", protocol 1, node, otp, os_pid, ticks_per_second,
//                     time_offset, creation, version;
//                     of role "data": protocol, session, key, stream (which of the session's
//                     data connections it is, from 0; 0 where it is missing), and after it the
//                     trace's raw bytes for ever. 0 begins a trace, and ends the data connections
//                     before it; the others belong to the trace that has begun. What one process
//                     sends goes in one of them. Each of several brings an empty frame where it has
//                     had nothing else for 10 ms. The trace's end is told (trace_stopped) before
//                     the first of several is closed, unless that has told its own end (FRAME_END).
//                     One of them may be lost and come back. A frame may hold a list of messages,
//                     in the order of their times, unless the connection is the only one. There
//                     are 32 at most, and 64 of all shims besides each one's first; one more is
//                     closed
//     tiers           tiers [{name, m, f, a, returns}], identity "none" | "spec" | "ask",
//                     slow_threshold_us, stats, calls, slow;
//                     returns "none": return values of the tier do not travel; stats, calls, slow:
//                     what it wants to be sent
//     trace_started   at, labels, tracer "port" | "native"
//                     at: the node's monotonic time in ticks, here and below; labels: what the
//                     labels of its requests start with, above 32 bits of counter; tracer: what
//                     the VM traces to, the port without
//     trace_stopped   at, reason, text
//     clock           at, time_offset, unsampled, off_ms, tripped_ms, away_ms, trips,
//                     lowered_ms, unmarked_calls, unmarked
//                     before the tiers and every second; all but the first two since the clock
//                     message before. off_ms: all the time without a trace, and of it what was
//                     the breaker's doing, and when there was no collector; the rest somebody asked
//                     for. unmarked_calls: calls of tiers while nothing had begun a request;
//                     unmarked: the same of the whole trace, 0 as soon as something has begun one
//     gap             from, until, reason "reload" | "flags" | "messages", text
//                     the node's monotonic time: calls of tiers between the two may not have been
//                     traced
//     trace_total     labels (as in trace_started), messages, unsent
//                     after a trace's end: the messages that its trace port gave, dropped ones
//                     included, and how many of them were never sent. What its data connection did
//                     not bring is lost
//     identify_reply  id, identity (text or nil)
//     note            level, text; history (true: it stands in the node's history, too)
//     state           state "tracing" | "tripped" (by the guard) | "paused" (by steer), one_in,
//                     per_second (0: no such bound), level_ppm (what the guard lets through of
//                     these), trips (of the breaker), text (why, or empty)
//                     at first and whenever it changes
//     steered         id, ok, text; triggers, of the commands about them: [{name, trigger, tier,
//                     above, for_ms, high_water, every_ms, seconds, hz, label, began, again_ms,
//                     value, process}], where trigger_list has asked
//                     tier: of the trigger "tier_p99"; value: the last one seen, if any; process:
//                     whose queue that is; began: so many runs; again_ms: until the next one may
//     p99             tiers [{tier}]: whose 99th percentile it wants to know at each flush, in
//                     place of those before; answered by p99
//     full_started    id, at, functions, processes, new_processes, scheduling, gc, modules [{name,
//                     application}]
//                     a full trace: how many functions have patterns and how many processes flags,
//                     and whether all that are made have them, too; scheduling, gc: whether these
//                     are traced
//     full_shut       id, at: it is about to be over, and what ends from then on is not traced to
//                     its end; full_stopped follows when all is undone
//     full_stopped    id, at (since when), reason "done" | "time_limit" | "tripped" |
//                     "no_function" | "error", text
//                     of the answer to full, too, when it cannot be
//     flame           requests, seconds, only, name, all, applications [{name}], modules [{name}]:
//                     the node itself wants a full trace, one at a time; answered by flamed. With
//                     label and scheduling (whether that will be traced): of the request with this
//                     label, which begins when the shim has been told full
//     full_missed     id, processes [{pid, name}]: the answer to full_more, those that had no flag
//     full_named      id, processes [{pid, name}]: the answer to full_names, those that are there
//     stacks          name, label, trigger (that began it, or empty), and the fields of stacks
//                     below but id: the node itself wants its stacks sampled, one at a time, and
//                     beside it one with slice_s; answered by stacks_kept
//     stacks_started  id, at, text (for people, or empty): stack sampling has begun
//     stacks_taken    id, at, bytes (sample_records.h), and since it began: samples, unchanged,
//                     unanswered, held_ms, late_ms, cost_us; processes: that it looks at now
//                     once a second at least
//     stacks_stopped  id, at, reason "done" | "stopped" | "no_process" | "error", text, and the
//                     same numbers
//   collector -> shim
//     welcome         session, key (16 bytes), version
//     ping            every 2 s
//     identify        id, m, f, a, args (external term of the argument list)
//     disarm          m, f, a, reason
//     stale           tier, label: the tier is called under this label, whose request is over
//     stats           rows [{bucket_start, resolution_s, node, identity, tier, requests, …}]
//     calls           identity, outcome, started_at, duration_us, spans [{tier, depth, pid, …}]:
//                     a finished request
//     slow            the same of one that took longer than slow_threshold_us
//     steer           id, command "pause" | "resume" | "sample", one_in or per_second |
//                     "trigger_add", trigger, above, and any of tier, name, for_ms, high_water,
//                     every_ms, seconds, hz, label | "trigger_list" | "trigger_remove", name
//                     or all: answered by steered
//     p99             tiers [{tier, p99_us}]: of the calls of a flush, where any ended
//     full            id, seconds, all, applications [{name}], modules [{name}] (with *),
//                     processes [{pid}], label (of the request that a header wants traced, or 0)
//                     trace every function of these modules in these processes, and in those that
//                     they spawn, for so long at most: answered by full_started or full_stopped
//                     several at once from OTP 27 on
//     full_stop       id
//     full_more       id, processes [{pid}]: requests go through these, too
//     full_names      id, processes [{pid}]: what are these called?
//     flamed          as to a tool, of the full trace that the node has wanted
//     stacks_kept     likewise, of the stack sampling, with slice_s; of one that stands when it
//                     stands no longer
//     stacks          id, seconds (0: until it is told to stop), hz, top, by, every_ms, budget_ppm,
//                     registered [{name}], processes [{pid}], application, slice_s (0, or the run
//                     stands for ever and leaves backtrace_depth alone), labels (bool: tell whose
//                     tokens they hold): sample stacks; answered by stacks_started or
//                     stacks_stopped
//     stacks_stop     id
//     stacks_anew     id: a stacks_taken is to begin with the record that numbers begin anew
//     bye             reason
//
// And between a tool (role "tool": protocol, version) and the collector, which welcomes and pings
// it likewise:
//
//   tool -> collector
//     nodes
//     watch           node: from now on its rows every second, instead of another node's
//     steer           node, and the fields of steer above but id: answered by steered, or error
//     flame           node, requests, seconds, only, name, all, applications, modules: a full trace
//                     of so many requests; answered by flaming until flamed
//     flame_stop      no more: what there is is kept
//     stacks          node, name, and the fields of stacks above: sample stacks; answered by
//                     stacks_state until stacks_kept. With view_s: every so many seconds there is
//                     a stacks_view, and nothing is kept, unless keep is true. With looks (true):
//                     nothing is kept, and what is seen comes as it is, as stacks_looks
//     stacks_stop     no more: what there is is kept
//     note            text, node (missing: of all of them), at (ns since 1970 UTC; missing: now):
//                     what somebody did; answered by noted, or error
//     pong            to every ping
//   collector -> tool
//     node            node, connected, since, …: one for each node, see collector/app/tool_link.c;
//                     then nodes
//     nodes           count, unwritten_s: for how long the database could not be written, 0: it can
//                     be; database: its absolute path, "" when it is not known; export: how the
//                     export stands, in words, export_behind_s: for how long the oldest change
//                     waits, export_waiting: how many buckets of nodes do (all three only where
//                     there is one); otlp: how --otlp stands, in words, otlp_traces_behind_s,
//                     otlp_traces_waiting, otlp_metrics_behind_s, otlp_metrics_waiting: for how
//                     long the oldest request and bucket wait, and how many do (likewise)
//     rows            node, connected, state, seconds (what the rows cover), identities [{identity,
//                     requests, errors, mean_us, p99_us, incomplete, expired}], the first one
//                     _total; and incomplete, expired, unsampled, dropped_messages, decode_errors,
//                     off_ms of that time (all without a trace); unmarked_calls of the whole
//                     trace, as long as nothing has begun a request
//     steered         ok, text, triggers: what the node answered
//     noted           id, at, node, text: the note as it is kept
//     flaming         requests (that are there), incomplete, others, unseen, partly, functions,
//                     processes, messages, new_processes; text: what it waits for before it
//                     begins, or empty: every second
//     flamed          profile (its number; 0: there is none), reason, text, and all that flaming
//                     has; identities [{identity, requests}]: of others, the first of them; missed
//                     [{pid, name, requests}]: processes that were not followed into, and in how
//                     many of the requests; costs [{text}]: what the profile has cost, in lines
//     stacks_state    the numbers of stacks_taken, and lost: of these looks those that the tool has
//                     not got in stacks_looks, as it did not read in time: every second
//     stacks_looks    node, at (ns since 1970 UTC: when the run began), bytes (sample_records.h):
//                     one after the other they are a run's records, from its begin on. Where some
//                     were lost the next ones begin with the time that went by, and with forget
//     stacks_view     what was seen since the one before, or the begin: duration_us, samples
//                     (looks, unchanged ones included), busy (those at processes that were running,
//                     or ready to), processes [{pid, name, initial_call, application, status,
//                     function, reductions, queue, queue_change, samples, unanswered; memory,
//                     memory_change: where it is known}], functions [{name, self, total}], which
//                     are counts of busy
//     stacks_kept     profile (its number; 0: there is none), reason, text, and all that
//                     stacks_state has
//     error           text: what was asked for cannot be
#pragma once

enum { CONTROL_PROTOCOL = 1 }; // the version that a hello tells

// -- types of messages ----------------------------------------------------------------------------

// the handshake, net/auth.h
#define CONTROL_AUTH "auth"
#define CONTROL_CHALLENGE "challenge"
#define CONTROL_ANSWER "answer"
#define CONTROL_PROVEN "proven"
// shim -> collector; a tool says hello, too
#define CONTROL_HELLO "hello"
#define CONTROL_TIERS "tiers"
#define CONTROL_TRACE_STARTED "trace_started"
#define CONTROL_TRACE_STOPPED "trace_stopped"
#define CONTROL_CLOCK "clock"
#define CONTROL_GAP "gap"
#define CONTROL_TRACE_TOTAL "trace_total"
#define CONTROL_IDENTIFY_REPLY "identify_reply"
#define CONTROL_NOTE "note"
#define CONTROL_STATE "state"
#define CONTROL_STEERED "steered"
#define CONTROL_P99 "p99" // to a shim, too
#define CONTROL_FULL_STARTED "full_started"
#define CONTROL_FULL_SHUT "full_shut"
#define CONTROL_FULL_STOPPED "full_stopped"
#define CONTROL_FLAME "flame" // a tool, too
#define CONTROL_FULL_MISSED "full_missed"
#define CONTROL_FULL_NAMED "full_named"
// collector -> shim; welcome, ping and bye to tools, too
#define CONTROL_STACKS_STARTED "stacks_started"
#define CONTROL_STACKS_TAKEN "stacks_taken"
#define CONTROL_STACKS_STOPPED "stacks_stopped"

#define CONTROL_WELCOME "welcome"
#define CONTROL_PING "ping"
#define CONTROL_IDENTIFY "identify"
#define CONTROL_DISARM "disarm"
#define CONTROL_STALE "stale"
#define CONTROL_STATS "stats"
#define CONTROL_CALLS "calls"
#define CONTROL_SLOW "slow"
#define CONTROL_STEER "steer"
#define CONTROL_FULL "full"
#define CONTROL_FULL_STOP "full_stop"
#define CONTROL_FULL_MORE "full_more"
#define CONTROL_FULL_NAMES "full_names"
#define CONTROL_FLAMED "flamed"           // to tools, too
#define CONTROL_STACKS "stacks"           // to a shim, and from tools and shims
#define CONTROL_STACKS_STOP "stacks_stop" // likewise
#define CONTROL_STACKS_ANEW "stacks_anew"
#define CONTROL_BYE "bye"
// tool -> collector; steer, flame and note, too
#define CONTROL_NODES "nodes"
#define CONTROL_WATCH "watch"
#define CONTROL_FLAME_STOP "flame_stop"
#define CONTROL_PONG "pong"
// collector -> tool; nodes, behind each node, steered and flamed, too
#define CONTROL_NODE "node"
#define CONTROL_ROWS "rows"
#define CONTROL_NOTED "noted"
#define CONTROL_FLAMING "flaming"
#define CONTROL_STACKS_STATE "stacks_state"
#define CONTROL_STACKS_LOOKS "stacks_looks"
#define CONTROL_STACKS_VIEW "stacks_view"
#define CONTROL_STACKS_KEPT "stacks_kept"
#define CONTROL_ERROR "error"

// -- words of fields ------------------------------------------------------------------------------

// role
#define CONTROL_ROLE_DATA "data"
#define CONTROL_ROLE_TOOL "tool"
// state; as long as a shim tells nothing a node is idle
#define STATE_IDLE "idle"
#define STATE_TRACING "tracing"
#define STATE_WAITING "waiting" // for its collector
#define STATE_TRIPPED "tripped"
#define STATE_PAUSED "paused"
// tracer
#define TRACER_NATIVE "native"
// command
#define STEER_PAUSE "pause"
#define STEER_RESUME "resume"
#define STEER_SAMPLE "sample"
#define STEER_TRIGGER_ADD "trigger_add"
#define STEER_TRIGGER_LIST "trigger_list"
#define STEER_TRIGGER_REMOVE "trigger_remove"
// level of a note
#define LEVEL_WARNING "warning"
// reason of a gap
#define GAP_RELOAD "reload"
#define GAP_MESSAGES "messages"

// -- fields ---------------------------------------------------------------------------------------

#define FIELD_A "a"
#define FIELD_ABOVE "above"
#define FIELD_AGAIN_MS "again_ms"
#define FIELD_ALL "all"
#define FIELD_APPLICATION "application"
#define FIELD_APPLICATIONS "applications"
#define FIELD_ARGS "args"
#define FIELD_ASYNC "async"
#define FIELD_AT "at"
#define FIELD_AWAY_MS "away_ms"
#define FIELD_BEGAN "began"
#define FIELD_BUCKET_START "bucket_start"
#define FIELD_BUDGET_PPM "budget_ppm"
#define FIELD_BUSY "busy"
#define FIELD_BY "by"
#define FIELD_BYTES "bytes"
#define FIELD_CALLS "calls"
#define FIELD_CERTIFICATE "certificate"
#define FIELD_CLOCK_OFFSET_US "clock_offset_us"
#define FIELD_COMMAND "command"
#define FIELD_COMPLETE "complete"
#define FIELD_CONNECTED "connected"
#define FIELD_COST_US "cost_us"
#define FIELD_COST_US_PER_S "cost_us_per_s"
#define FIELD_COSTS "costs"
#define FIELD_COUNT "count"
#define FIELD_CREATION "creation"
#define FIELD_DATABASE "database"
#define FIELD_DECODE_ERRORS "decode_errors"
#define FIELD_DEPTH "depth"
#define FIELD_DROPPED_MESSAGES "dropped_messages"
#define FIELD_DURATION_US "duration_us"
#define FIELD_ERRORS "errors"
#define FIELD_EVERY_MS "every_ms"
#define FIELD_EXPIRED "expired"
#define FIELD_EXPORT "export"
#define FIELD_EXPORT_BEHIND_S "export_behind_s"
#define FIELD_EXPORT_WAITING "export_waiting"
#define FIELD_F "f"
#define FIELD_FOR_MS "for_ms"
#define FIELD_FROM "from"
#define FIELD_FUNCTION "function"
#define FIELD_FUNCTIONS "functions"
#define FIELD_GC "gc"
#define FIELD_HELD_MS "held_ms"
#define FIELD_HIGH_WATER "high_water"
#define FIELD_HISTORY "history"
#define FIELD_HZ "hz"
#define FIELD_ID "id"
#define FIELD_IDENTITIES "identities"
#define FIELD_IDENTITY "identity"
#define FIELD_INCOMPLETE "incomplete"
#define FIELD_INITIAL_CALL "initial_call"
#define FIELD_KEEP "keep"
#define FIELD_KEY "key"
#define FIELD_LABEL "label"
#define FIELD_LABELS "labels"
#define FIELD_LATE_MS "late_ms"
#define FIELD_LEVEL "level"
#define FIELD_LEVEL_PPM "level_ppm"
#define FIELD_LOOKS "looks"
#define FIELD_LOST "lost"
#define FIELD_LOWERED_MS "lowered_ms"
#define FIELD_M "m"
#define FIELD_MEAN_US "mean_us"
#define FIELD_MEMORY "memory"
#define FIELD_MEMORY_CHANGE "memory_change"
#define FIELD_MESSAGES "messages"
#define FIELD_MESSAGES_PER_S "messages_per_s"
#define FIELD_MISSED "missed"
#define FIELD_MODULES "modules"
#define FIELD_NAME "name"
#define FIELD_NEW_PROCESSES "new_processes"
#define FIELD_NODE "node"
#define FIELD_NONCE "nonce"
#define FIELD_OFF_MS "off_ms"
#define FIELD_OK "ok"
#define FIELD_ONE_IN "one_in"
#define FIELD_ONLY "only"
#define FIELD_OS_PID "os_pid"
#define FIELD_OTHERS "others"
#define FIELD_OTLP "otlp"
#define FIELD_OTLP_METRICS_BEHIND_S "otlp_metrics_behind_s"
#define FIELD_OTLP_METRICS_WAITING "otlp_metrics_waiting"
#define FIELD_OTLP_TRACES_BEHIND_S "otlp_traces_behind_s"
#define FIELD_OTLP_TRACES_WAITING "otlp_traces_waiting"
#define FIELD_OTP "otp"
#define FIELD_OUTCOME "outcome"
#define FIELD_P99_US "p99_us"
#define FIELD_PARTLY "partly"
#define FIELD_PEER "peer"
#define FIELD_PER_SECOND "per_second"
#define FIELD_PID "pid"
#define FIELD_PROCESS "process"
#define FIELD_PROCESSES "processes"
#define FIELD_PROFILE "profile"
#define FIELD_PROOF "proof"
#define FIELD_PROTOCOL "protocol"
#define FIELD_QUEUE "queue"
#define FIELD_QUEUE_CHANGE "queue_change"
#define FIELD_REASON "reason"
#define FIELD_REDUCTIONS "reductions"
#define FIELD_REGISTERED "registered"
#define FIELD_REQUESTS "requests"
#define FIELD_REQUESTS_PER_S "requests_per_s"
#define FIELD_RESOLUTION_S "resolution_s"
#define FIELD_ROLE "role"
#define FIELD_ROWS "rows"
#define FIELD_SAMPLES "samples"
#define FIELD_SCHEDULING "scheduling"
#define FIELD_SECONDS "seconds"
#define FIELD_SELF "self"
#define FIELD_SELF_US "self_us"
#define FIELD_SESSION "session"
#define FIELD_SINCE "since"
#define FIELD_SLICE_S "slice_s"
#define FIELD_SLOW "slow"
#define FIELD_SLOW_THRESHOLD_US "slow_threshold_us"
#define FIELD_SPANS "spans"
#define FIELD_STACKS "stacks"
#define FIELD_START_US "start_us"
#define FIELD_STARTED_AT "started_at"
#define FIELD_STATE "state"
#define FIELD_STATS "stats"
#define FIELD_STATUS "status"
#define FIELD_STREAM "stream"
#define FIELD_TEXT "text"
#define FIELD_TICKS_PER_SECOND "ticks_per_second"
#define FIELD_TIER "tier"
#define FIELD_TIERS "tiers"
#define FIELD_TIME_OFFSET "time_offset"
#define FIELD_TOP "top"
#define FIELD_TOTAL "total"
#define FIELD_TRACER "tracer"
#define FIELD_TRIGGER "trigger"
#define FIELD_TRIGGERS "triggers"
#define FIELD_TRIPPED_MS "tripped_ms"
#define FIELD_TRIPS "trips"
#define FIELD_TYPE "type"
#define FIELD_UNANSWERED "unanswered"
#define FIELD_UNCHANGED "unchanged"
#define FIELD_UNMARKED "unmarked"
#define FIELD_UNMARKED_CALLS "unmarked_calls"
#define FIELD_UNSAMPLED "unsampled"
#define FIELD_UNSEEN "unseen"
#define FIELD_UNSENT "unsent"
#define FIELD_UNTIL "until"
#define FIELD_UNWRITTEN_S "unwritten_s"
#define FIELD_VALUE "value"
#define FIELD_VERSION "version"
#define FIELD_VIEW_S "view_s"
#define FIELD_WAIT_US "wait_us"
