// SPDX-License-Identifier: Apache-2.0
// Every cap of the collector, with its unit and its reason. Whatever the nodes send, memory stays
// below the sum of these: what does not fit is counted in the ledger, never kept.
//
// Where several nodes share something, none gets more than three times as much as is free
// (SLAB_SHARE in base/slab.h): whoever comes finds room; of what nodes keep for long, tier names,
// each is sure of some. What a burst took goes back within seconds after it; a node that is gone
// keeps some 150 KB, until another one needs its place.
//
// tests/unit/app/test_limits.c fills each line of the sum below to the brim. What is usual is far
// below: 100,000 open requests of four open calls in two processes take 84 MB
// (tests/scenarios/16_limits.sh). The caps are the whole collector's: pipelines that run beside
// each other (--threads) have an equal part each of what they do not share, and 12 MB of scratch on
// top, of which what their threads read and have to say is a part.
#pragma once

// -- the sum, MB of 1,000,000 bytes, on a machine of 64 bits --------------------------------------

// Requests of all nodes: calls, spans, requests and their names, processes, costs of calls,
// indexes, and scratch to work a finished one out. Full traces and their profiles, and runs of
// stack sampling, and one of each while it is written, have theirs of it: meanwhile fewer requests
// may be open. Runs take it as they grow, LIMIT_MB_SAMPLES_STEP by step. LIMIT_MB_SCRATCH stays.
#define LIMIT_MB_REQUESTS 200
#define LIMIT_MB_SCRATCH 11
#define LIMIT_MB_PROFILES 85
#define LIMIT_MB_SAMPLES 85
#define LIMIT_MB_SAMPLES_STEP 20
// Two sets of statistics, one gathered while the other is written: rows, those of _other and _total
// too, histograms, the ledger, paths, kept requests.
#define LIMIT_MB_STATISTICS 170
// What kept requests are compared with.
#define LIMIT_MB_KEPT 13
// LIMIT_NODES nodes, and what each remembers.
#define LIMIT_MB_NODES 75
// Nodes that LIMIT_TOOLS tools watch.
#define LIMIT_MB_WATCHED 15
// Bytes that wait to be read, or to be sent, or for the rest of a frame.
#define LIMIT_MB_CONNECTIONS 68
// The programs, their libraries, SQLite's cache of 8 MB, connections and their TLS, names, a reader
// of blocks (78 KB): measured 30, and some 40 KB for each of LIMIT_CONNECTIONS.
#define LIMIT_MB_REST 58
#define LIMIT_MB                                                                                   \
    (LIMIT_MB_REQUESTS + LIMIT_MB_STATISTICS + LIMIT_MB_KEPT + LIMIT_MB_NODES + LIMIT_MB_WATCHED + \
     LIMIT_MB_CONNECTIONS + LIMIT_MB_REST)

// -- streams --------------------------------------------------------------------------------------

// Bytes of one trace frame that is decoded. Return values travel whole; larger ones are skipped and
// counted as lost.
#define LIMIT_FRAME_BYTES (4u << 20)
// Bytes a frame may claim at all. More than this is no trace stream, and the connection is refused.
#define LIMIT_FRAME_CLAIM (256u << 20)
// Bytes of begun frames of all nodes together whose rest is still to come; each node may keep as
// many as LIMIT_SURE_BYTES besides. A frame for which there is no room is lost. What several
// connections of a node have brought counts with them, and what their blocks are read with.
#define LIMIT_PARTIAL_BYTES (16u << 20)
#define LIMIT_SURE_BYTES 16384u
// Bytes that a thread of --threads reads at a time from one data connection: what it does with them
// takes a fraction of a millisecond, and the main thread waits no longer than that. A record of TLS
// and more.
#define LIMIT_INTAKE_BYTES 65536u
// Bytes of what such threads have for shims until the main thread sends it, milliseconds later; of
// all together.
#define LIMIT_SAID_BYTES (1u << 20)
// Bytes of one control message, as the protocol says.
#define LIMIT_CONTROL_BYTES (1u << 20)
// Messages of more than this that are on their way at a time; who begins one more is closed, and
// may try again.
#define LIMIT_CONTROL_SMALL 32768u
#define LIMIT_CONTROL_LARGE 8u
// Nesting of a control message: a calls message has 4.
#define LIMIT_CONTROL_DEPTH 8
// Elements of all maps and arrays of a control message together: 250 tiers of 4 pairs, and room.
#define LIMIT_CONTROL_ELEMENTS 16384
// Data connections of one shim; and those of all shims together besides one each. Past it one more
// is refused.
#define LIMIT_STREAMS 32u
#define LIMIT_MORE_STREAMS 64u
// Connections at the same time: two a node, more data connections, some of tools, and newcomers;
// fewer where the process may not have so many files. Past it the newest is closed.
#define LIMIT_CONNECTIONS 704
// Those among them that have not yet said who they are; and from one address (one /64 network of
// IPv6). Past it the oldest from the address that has the most goes. A shim or a tool says who it
// is within milliseconds; a flood loses its own connections.
#define LIMIT_NEWCOMERS 128
#define LIMIT_NEWCOMERS_PER_ADDRESS 64
// TLS handshakes begun in a second, from one address (one /64 network of IPv6): each takes up to 5
// ms of the one thread that also takes traces in. More of them wait for the next second.
#define LIMIT_HANDSHAKES_PER_ADDRESS 50
// Addresses whose handshakes are counted in a second; further ones are not.
#define LIMIT_HANDSHAKE_ADDRESSES 256
// Files that are kept for other things than connections.
#define LIMIT_OTHER_FILES 64
// Bytes of its first message; a hello has some 200. What strangers can make us keep is this for
// each connection.
#define LIMIT_HELLO_BYTES 16384u
// Seconds that a new connection may take until it has said, and proven, who it is.
#define LIMIT_HELLO_SECONDS 5
// Bytes of the shared secret. 16 bytes cannot be guessed if they are random, and passphrases that
// short should be noticed.
#define LIMIT_SECRET_LEAST 16
#define LIMIT_SECRET_BYTES 1024
// Bytes that may wait to be sent to one shim; past it rows and calls for it are left out and the
// log says so.
#define LIMIT_OUTPUT_BYTES (4u << 20)
// The same of all together, besides LIMIT_SURE_BYTES each.
#define LIMIT_OUTPUT_ALL_BYTES (16u << 20)

// Tools that are connected at a time: they share the connections with the nodes.
#define LIMIT_TOOLS 16
// What is remembered of a node's ups and downs, 208 bytes each. Changes of the guard's level in a
// row are one.
#define LIMIT_NODE_EVENTS 20u
// Triggers of a node, as many as its shim takes (shim/src/triggers/kprof_trigger_options.erl).
#define LIMIT_TRIGGERS 16u
// Seconds that a node has to answer what a tool wants of it: arming takes a few at most.
#define LIMIT_STEER_SECONDS 10

// -- requests (per collector) ---------------------------------------------------------------------

// Requests that are open or in their grace time. 128 bytes each, 128 more for the name that a web
// server's has from its begin, and up to 43 in the index of tokens.
#define LIMIT_OPEN_REQUESTS 150000u
// Spans of one request; the rest is cut and the request is incomplete. 490 bytes of scratch each,
// once.
#define LIMIT_SPANS_PER_REQUEST 20000u
// Processes that one request spawned; likewise.
#define LIMIT_SPAWNS_PER_REQUEST 10000u
// Chunks of seven spans of all open requests together, 288 bytes each: 1.1 million spans in 46 MB.
#define LIMIT_SPAN_CHUNKS 160000u
// Open calls of all processes of all nodes, 48 bytes each, and 16 more when garbage collection or
// scheduling is traced.
#define LIMIT_OPEN_CALLS 600000u
// Processes that have made calls lately, 160 bytes each, and up to 43 in the index of pids,
#define LIMIT_PROCESSES 300000u
// and among them those without an open call: the memory of many more would be slower than to take
// them up again.
#define LIMIT_IDLE_PROCESSES 10000u
// Processes that were forgotten so are remembered with what they were at last, 16 bytes each: what
// they have sent may still come.
#define LIMIT_FORGOTTEN_PROCESSES 16384u
// Closed tokens that are remembered, so that what comes late is counted as stale and opens nothing.
#define LIMIT_CLOSED_TOKENS 32768u
// What processes were at lately, of all nodes, 64 bytes each: messages of a process may overtake
// those of another by DISORDER_NS, in which all nodes together end some thousands of calls.
#define LIMIT_EPISODES 32768u
// Messages that processes have taken, of all nodes, 80 bytes each, where a native tracer tells
// them: of a process that waited for longer it is no longer known what for.
#define LIMIT_HOPS 16384u
// Messages that were sent and not taken yet, likewise, 16 bytes each; how long others waited is not
// measured. And times for which processes did not run, 24 bytes each: behind as many it is not
// known any more whether a process that takes a message ran when that was sent.
#define LIMIT_SENDS 32768u
#define LIMIT_RESTS 16384u
// Labels that are remembered as lent, 48 bytes each.
#define LIMIT_LENT_LABELS 4096u
// Calls of a node that came before what their senders did until then, 48 bytes each: they are
// looked at again when DISORDER_NS has passed, or when further ones have no room.
#define LIMIT_CALLS_AHEAD 128u
// A traced loop that never returns grows its process's stack on the node with every round, and its
// pattern must go. It shows by its open calls: this many in one process
#define LIMIT_CALL_DEPTH 20000u
// or, piled up in one process, calls of this many different requests, which no recursion does.
#define LIMIT_LOOP_REQUESTS 100u
// or, of an entry, by a request that has had no end within the request timeout although its process
// called the entry again this often.
#define LIMIT_LOOP_ENTRIES 10u

// -- names ----------------------------------------------------------------------------------------

// Pipelines that share names, each on a thread of its own (--threads): a bit each for who uses a
// name.
#define LIMIT_PIPELINES 8u
// Nodes that are known; the one that has been gone for longest makes room.
#define LIMIT_NODES 250u
// Tiers of one node, and tier names of all nodes. A node keeps its names as long as it is
// connected: so that many of many names leave some for others, each is sure of so many of them,
// whoever has the rest.
#define LIMIT_TIERS 200u
#define LIMIT_TIER_NAMES 4000u
#define LIMIT_SURE_TIER_NAMES 12u
// Bytes of a module's or function's name, 255 characters, and of all that a node traces or names
// by: 80 each, with 400 of them.
#define LIMIT_ATOM_BYTES 1020u
#define LIMIT_TIER_BYTES 32768u
// Names of functions in trace messages whose meaning is remembered.
#define LIMIT_FUNCTION_NAMES 1024u
// Identities; further ones are counted under _other.
#define LIMIT_IDENTITIES 1000u
// Bytes of an identity, a tier's or a node's name; longer ones are cut.
#define LIMIT_NAME_BYTES 120u
// Rows (bucket, node, identity, tier) between two flushes, some 200 bytes each, and a histogram.
// That has 256 bytes for each power of two between its shortest and its longest call. Half as many
// of _other come on top, and one of _total for each bucket, node and tier of these. As many rows of
// the ledger (bucket, node).
#define LIMIT_STAT_ROWS 16000u
// Bytes of these rows' histograms together, besides 512 each. Past it two buckets are taken
// together, as often as needed: quantiles become coarser.
#define LIMIT_HISTOGRAM_BYTES (16u << 20)
// The same of the histograms that a tool watches, a node's.
#define LIMIT_LIVE_BYTES (256u << 10)

// -- kept requests and paths ----------------------------------------------------------------------

// Requests of one node, identity and bucket that are kept whole: over the threshold, failed, and
// the slowest.
#define LIMIT_KEPT_OVER 10u
#define LIMIT_KEPT_FAILED 3u
#define LIMIT_KEPT_SLOWEST 3u
// Spans kept of one of them, 72 bytes each; a person looks at some hundreds.
#define LIMIT_KEPT_SPANS 2000u
// Nodes' identities whose kept requests are remembered, so that further ones are compared with
// them: 568 bytes each.
#define LIMIT_KEEP_RECORDS 20000u
// Bytes of them between two flushes.
#define LIMIT_KEPT_BYTES (16u << 20)
// Positions in the tree, of all nodes: further ones are counted under the path _other.
#define LIMIT_PATHS 10000u
// Tiers in a path; what is deeper counts under the path of this length.
#define LIMIT_PATH_DEPTH 32u
// Rows (bucket, node, identity, path) between two flushes, 96 bytes each.
#define LIMIT_PATH_ROWS 50000u

// -- profiles -------------------------------------------------------------------------------------

// Names of functions in a profile, and of what groups its stacks; as many names of their modules.
#define LIMIT_PROFILE_FRAMES 15000u
// Stacks of a profile, 12 bytes each and up to 43 in their index: further ones count as the stack
// below.
#define LIMIT_PROFILE_STACKS 60000u
// Frames of a stack; deeper ones are one frame. A person looks at some dozens, a browser draws some
// thousands.
#define LIMIT_PROFILE_DEPTH 256u
// Weights of a profile's stacks, 24 bytes each and up to 43 in their index; and of all requests of
// a full trace together whose fate is not known yet. Besides, of either, those that tell whose
// process it was: further ones are nobody's.
#define LIMIT_PROFILE_WEIGHTS 60000u
#define LIMIT_FULL_WEIGHTS 60000u
#define LIMIT_PROCESS_WEIGHTS 30000u
// Full traces and runs of stack sampling at a time, of all nodes; what each takes is less than 30
// MB.
#define LIMIT_FULL_TRACES 2u
// Those that wait for these to be over.
#define LIMIT_FULL_WAITING 8u
// Processes that a shim is told to trace fully from the start.
#define LIMIT_FULL_PIDS 1000u
// Requests that are asked of a full trace, and the seconds that it lasts at most: an hour of a rare
// request. The same stand in web/openapi.json, web/page/node.ts and the shim's kprof_flame.erl.
#define LIMIT_FULL_ASKED 100000u
#define LIMIT_FULL_SECONDS 3600u
// Applications and modules that a full trace names.
#define LIMIT_FULL_NAMES 100u
// Modules of a full trace, 16 bytes each in an index that is at least half empty.
#define LIMIT_FULL_MODULES 20000u
// Requests of a full trace that are open, or whose fate is not known yet: further ones are not
// taken.
#define LIMIT_FULL_REQUESTS 256u
// Those that are known to be over, so that what comes late begins none anew.
#define LIMIT_FULL_CLOSED 1024u
// Events on the line of time of one request, 24 bytes each, and its processes: a person looks at
// some thousands. Of all requests whose fate is not known yet there are ten times as many at most.
#define LIMIT_TIMELINE_EVENTS 20000u
#define LIMIT_TIMELINE_LINES 1000u
// Processes of a full trace, and their open calls, 28 bytes each.
#define LIMIT_FULL_PROCESSES 4096u
#define LIMIT_FULL_CALLS 100000u
// Processes of a full trace that are told apart, and whose names its node is asked for: the first
// that come. Names of processes in a profile: others go by what they called first.
#define LIMIT_FULL_NAMED 256u
#define LIMIT_PROFILE_PROCESSES 200u
// Processes of a full trace that may have had no flag, of which its shim is asked: the first that
// come.
#define LIMIT_FULL_SUSPECTS 32u
// Messages of a full trace that wait for those that they have overtaken, 64 bytes each: what a
// trace port gives in DISORDER_NS is a tenth.
#define LIMIT_FULL_HELD 32768u
// Bytes of the looks of a run of stack sampling, which ends there: 60 s of 100 processes at 99 Hz
// take 2 to 6 MB.
#define LIMIT_SAMPLE_BYTES (8u << 20)
// Runs that end, at a time; and bytes of all runs, with their stacks and names. A run is sure of
// some, and gets no more than SLAB_SHARE times as much as is free (base/slab.h).
#define LIMIT_STACK_RUNS 12u
#define LIMIT_RUNS_BYTES 60000000u
#define LIMIT_SURE_RUN_BYTES (512u << 10)
// Seconds of a run; and what its shim may number before it begins anew: as many as it keeps.
#define LIMIT_SAMPLE_SECONDS 86400u
#define LIMIT_SAMPLE_FRAMES 10000u
#define LIMIT_SAMPLE_STACKS 20000u
#define LIMIT_SAMPLE_PROCESSES 5000u
// Runs that stand for ever, of as many nodes. Their profiles have so many bytes of looks, so many
// names, and as many stacks and processes as a shim may number; at seven eighths of that they go on
// in another one, or after the seconds that were asked for, these at most.
#define LIMIT_STANDING_RUNS 10u
#define LIMIT_SLICE_BYTES (4u << 20)
#define LIMIT_SLICE_NAMES 8000u
#define LIMIT_SLICE_SECONDS 43200
// Labels of requests that processes of a run worked for, 8 bytes each: further ones are not known.
// Among them those of which nothing is known yet, up to 43 bytes each; and requests that were over
// before a look told of them, 16 bytes each.
#define LIMIT_SAMPLE_LABELS 100000u
#define LIMIT_SAMPLE_OPEN 12000u
#define LIMIT_SAMPLE_LATE 4096u
// Columns and rows of a heat map of them: more than a screen has, in 10 MB.
#define LIMIT_HEAT_COLUMNS 2000u
#define LIMIT_HEAT_ROWS 100u

// -- notes ----------------------------------------------------------------------------------------

// Bytes of a note's text; longer ones are cut. A person reads a line.
#define LIMIT_NOTE_BYTES 240u
// Notes that wait to be written.
#define LIMIT_NOTES_WAITING 16u

// -- identity questions ---------------------------------------------------------------------------

// Calls of one request whose arguments may be asked about.
#define LIMIT_ASKS_PER_REQUEST 8u
// Questions that a shim has not answered yet, of one node.
#define LIMIT_ASKS_OPEN 1000u
// Answers remembered by function and arguments.
#define LIMIT_ASK_CACHE 1024u
// Bytes of arguments that are sent with a question.
#define LIMIT_ASK_BYTES 65536u

// -- times ----------------------------------------------------------------------------------------

// How long an ended request waits for its asynchronous spans and for messages that overtook each
// other (up to 4 ms).
#define GRACE_NS 1000000000LL
// By how much a message may be older than one of another process that came before it (seen: 4 ms).
#define DISORDER_NS 4000000LL
// How much longer it waits for the answer of an identity question.
#define GRACE_ASK_NS 2000000000LL
// Requests handed to a shim that prints calls, per second and node.
#define LIMIT_CALLS_PER_SECOND 10
// Tiers and labels of requests that are over under which they are still called: told to a shim in a
// second, 16 bytes each and node.
#define LIMIT_STALE_PER_SECOND 64
// Slow requests that the log tells of, per second and node.
#define LIMIT_SLOW_PER_SECOND 5
// Lines of the log in a minute, and at once when it was quiet before: what a person can read who
// looks for what happened.
#define LIMIT_LOG_LINES 200
// Of one kind, and of what one node makes us write: some 100 tiers that are not there.
#define LIMIT_LOG_LINES_OF_KIND 100
// Those of a kind that are written though there was room for no more: an error of our own, while
// others talk.
#define LIMIT_LOG_LINES_RARE 5
// Kinds of lines that are told apart, 280 bytes each; the collector has some 60.
#define LIMIT_LOG_KINDS 100u
// Spans of one request that are printed.
#define LIMIT_CALLS_SPANS 200u

// -- the page -------------------------------------------------------------------------------------

// Questions to the database that wait to be worked out; one more is refused (503).
#define LIMIT_READER_JOBS 64u
// Threads that work them out, each with a connection and SQLite's cache of 2 MB.
#define LIMIT_READER_THREADS 2u
// Seconds that one may take.
#define LIMIT_READER_SECONDS 10
// Connections of browsers and other readers; with event streams, of which each keeps one open.
#define LIMIT_WEB_CONNECTIONS 1500u
// Bytes of a request's head, of its body, and of an answer.
#define LIMIT_WEB_HEAD_BYTES 16384u
#define LIMIT_WEB_BODY_BYTES 4096u
#define LIMIT_WEB_ANSWER_BYTES (16u << 20)
// Bytes of all answers that are on their way, to those who do not read them for instance; past it
// answers are refused (503). With what else the page takes, some 165 MB, which stand beside the sum
// above, as it is off unless somebody asks for it.
#define LIMIT_WEB_OUTPUT_BYTES (64u << 20)
// Seconds after which a connection on which nothing comes or goes is closed.
#define LIMIT_WEB_SECONDS 30
// What browsers want done of the collector, and what is not answered yet; one more is refused
// (503).
#define LIMIT_WEB_ORDERS 16u
// Full traces that browsers have asked for of which is remembered what became of them.
#define LIMIT_WEB_FLAMES 12u
// Runs of stack sampling that browsers have asked for and that go on, those of which is remembered
// what became of them, and the nodes at which browsers look live: a megabyte each.
#define LIMIT_WEB_RUNS 12u
#define LIMIT_WEB_LOOKS 12u
// Seconds that a question may take to come, TLS before it too; then its connection is closed.
#define LIMIT_WEB_ASK_SECONDS 15
// Points of a chart, and tiers of one that stand for themselves; the rest is "_other".
#define LIMIT_SERIES_STEPS 2000u
#define LIMIT_SERIES_TIERS 64u
// Series that /metrics tells at most: 5 MB of text. Their histograms take 1 MB as a rule, and never
// more than 12 MB; each answer that is being written has a copy.
#define LIMIT_METRIC_SERIES 20000u
// Answers of /metrics that are being written, or wait for it; one more is refused (503).
#define LIMIT_SCRAPES 4u
// Seconds for which the database may refuse to be written before /readyz says so.
#define LIMIT_UNWRITTEN_SECONDS 5

// -- the history of many collectors ---------------------------------------------------------------

// What one question fetches from an engine at most: rows, which take some 500 bytes each, and bytes
// on the way.
#define LIMIT_MIRROR_ROWS 1000000
#define LIMIT_HISTORY_ANSWER_BYTES (256u << 20)
// Databases that sent their history there, which are told apart in numbers of kept requests.
#define LIMIT_HISTORY_DATABASES 20000

// -- the export -----------------------------------------------------------------------------------

// Of what is read out of the database and sent at once: bytes of all tables together before they
// are packed, rows, and the buckets and nodes that they are of. An engine likes few and large
// batches: of each it makes a part a table and partition, with a hundred files. There are two, one
// that is sent and one that is read meanwhile. A backlog begins with batches of the least bytes,
// also after a failure, so that an engine that is slow gets one done in its time.
#define LIMIT_EXPORT_BATCH_BYTES (16u << 20)
#define LIMIT_EXPORT_BATCH_LEAST (4u << 20)
#define LIMIT_EXPORT_BATCH_ROWS 80000u
#define LIMIT_EXPORT_BATCH_MARKS 2000
// Days between the first and the last bucket of one: an engine refuses what goes into more than 100
// partitions at once.
#define LIMIT_EXPORT_BATCH_DAYS 20
// Bytes of one row, and of the largest text in it.
#define LIMIT_EXPORT_ROW_BYTES (64u << 10)
// Rows sent in a second on average, at most: a backlog leaves the machine to those who make one.
// Time lost to a slow batch may be made up, up to so many ms; a backlog begins with as much.
#define LIMIT_EXPORT_ROWS_PER_SECOND 500000u
#define LIMIT_EXPORT_CATCH_UP_MS 1000
// Of an engine's answer: bytes of its head, of its body, and seconds until it is whole.
#define LIMIT_EXPORT_HEAD_BYTES 65536u
#define LIMIT_EXPORT_ANSWER_BYTES 65536u
#define LIMIT_EXPORT_ANSWER_SECONDS 60
// Seconds for which the collector's end is put off to send the rest.
#define LIMIT_EXPORT_END_SECONDS 5
// Seconds until another try: doubled after each, from the first up to the second.
#define LIMIT_EXPORT_PAUSE_LEAST 1
#define LIMIT_EXPORT_PAUSE_MOST 30
// And where the receiver says for how long not to ask it, so many at most.
#define LIMIT_EXPORT_RETRY_MOST 300u
// Rows that the engine refused of which is remembered why, 400 bytes each; and of one batch.
#define LIMIT_EXPORT_REFUSALS 1000
#define LIMIT_EXPORT_BATCH_REFUSALS 64
// Bytes of a password.
#define LIMIT_EXPORT_PASSWORD_BYTES 256
// Of what --otlp reads out of the database and sends at once: bytes before they are packed, kept
// requests or data points of metrics, and bytes of one of them. Receivers take 4 MB at least.
#define LIMIT_OTLP_BATCH_BYTES (1u << 20)
#define LIMIT_OTLP_BATCH_ITEMS 1000u
#define LIMIT_OTLP_ITEM_BYTES (4u << 20)
// Milliseconds between two of them: a backlog leaves the machine to those who make one.
#define LIMIT_OTLP_PAUSE_MS 50
// Bytes of the file with headers for the receiver, and how many there are.
#define LIMIT_OTLP_HEADERS_BYTES 8192
#define LIMIT_OTLP_HEADERS 16
