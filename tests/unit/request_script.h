// SPDX-License-Identifier: Apache-2.0
// For tests of the request model: what a node's processes do as a short script, and what the
// tracker made of it as text.
//
//   begin T P time [number]
//   end T P time [error|astray|helper|sending]
//                           the markers of token T in process P, and the identity that the begin
//                           tells; astray: P had lost the token; helper: of a web server's helper;
//                           sending: its response is on its way
//   end T P time serial S   end T P time shows U   with the serial of its token, or the token of
//                                                  another request that P had
//   web T P time [number]   the begin marker of a request that ends in its process, and the
//                           identity that this calls it
//   says T P time within|from_now|no_more
//   call T P x time [F [S [L]]]
//                           a call of tier x in P; the token came from F, or P, with serial S; F
//                           had got serial L last
//   send T P time S         P sends a message, with such a token
//   take T P time F S [L]   P takes a message of F out of its mailbox, with such a token
//   enter T P x time [S]    the same of an entry, under a token of its own
//   blind T P x y time      the same of one whose return has no value and goes back to function y
//   upgrade T P time        P begins to serve a websocket
//   leftout P               a call of an entry that the sampler left out
//   ret P x time            exc P x time               its end
//   none T P x y time [F]   a call whose return has no value and goes back to function y, that of
//                           tier y if it is one
//   to P y time             control goes back to function y in P
//   spawn T P Q time        P spawns Q, and the spawn returns; raise T P time: it does not
//   die P time              gc|off P from until        what the process does besides
//   lost [latest]      gap from until      now time      reset
//
// Tokens are numbers, processes capital letters, tiers small ones, times milliseconds; commands end
// with ';'. A finished request is told as "complete 0..30 self 20: Aa 10..20 self 10, >Bb 12..14
// self 2 async;", with '>' for each span above, and marks where they are due: inner (not the
// outermost of its tier), async, open, error, unknown (no value), wait, gc, off. A wait that is
// measured is followed by ! and, where that is known, by what of it was in the run queue.
#pragma once

#include "unit.h"

#include "model/directory/directory.h"
#include "model/message/tier_set.h"
#include "model/requests/requests.h"

enum { SCRIPT_MS = 1000000 };

struct script {
    struct request_pool *pool;
    struct tracker *tracker;
    struct request_counts counts; // so far
    uint32_t finished[3];         // by fate
    uint32_t reasons[INCOMPLETE_REASONS];
    char told[16384]; // finished requests
    size_t len;
    uint32_t named; // how often a name was looked up
    char never[64]; // tiers that never return, in the order of telling
    char stale[64]; // of the first stale calls, likewise
};

__attribute__((format(printf, 2, 3))) static inline void script_tell(struct script *s,
                                                                     const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(s->told + s->len, sizeof s->told - s->len, format, args);
    va_end(args);
    s->len += n > 0 && (size_t)n < sizeof s->told - s->len ? (size_t)n : 0;
}

// A time in ms, with as many decimals as it needs.
static inline const char *script_ms(int64_t ns, char *out) {
    snprintf(out, 32, "%g", (double)ns / SCRIPT_MS);
    return out;
}

static inline void script_cost(struct script *s, const char *what, int64_t ns) {
    char text[32];
    if (ns != 0) {
        script_tell(s, " %s %s", what, script_ms(ns, text));
    }
}

static inline void script_finished(void *context, const struct request_result *r) {
    static const char *const fates[] = {"complete", "incomplete", "expired"};
    struct script *s = context;
    char a[32], b[32], c[32];
    s->finished[r->fate]++;
    assert_int_equal(r->reason != REASON_NONE, r->fate == REQUEST_INCOMPLETE);
    s->reasons[r->reason]++;
    script_tell(s, "%s %s..%s", fates[r->fate], script_ms(r->begin, a), script_ms(r->end, b));
    if (r->identity != IDENTITY_UNDEFINED) {
        script_tell(s, " as %u", r->identity);
    }
    if (r->error) {
        script_tell(s, " error");
    }
    if (r->fate == REQUEST_COMPLETE) {
        script_tell(s, " self %s", script_ms(r->times.uncovered, c));
    }
    if (r->cut) {
        script_tell(s, " cut from %u", r->calls);
    }
    if (trace_parent_known(&r->parent)) {
        for (size_t i = 0; i < sizeof r->parent; i++) {
            assert_int_equal(((const uint8_t *)&r->parent)[i], r->parent.flags);
        }
        script_tell(s, " asked by %u", r->parent.flags);
    }
    for (uint32_t i = 0; i < r->count && i < 40 && !r->cut; i++) {
        const struct span *span = &r->spans[i];
        script_tell(s, i == 0 ? ": " : ", ");
        for (uint32_t d = 0; d < span->depth; d++) {
            script_tell(s, ">");
        }
        script_tell(s, "%c%c %s..", (int)('A' + span->pid - 1), 'a' + span->tier - 1,
                    script_ms(span->start, a));
        if (!span->open) {
            script_tell(s, "%s self %s", script_ms(span->end, b), script_ms(span->self, c));
        }
        script_tell(s, "%s%s%s%s", span->outermost ? "" : " inner", span->async ? " async" : "",
                    span->open ? " open" : "",
                    span->error   ? " error"
                    : span->blind ? " unknown"
                                  : "");
        script_cost(s, "wait", span->wait);
        script_tell(s, "%s", span->measured ? "!" : "");
        if (span->run_queue != SPAN_UNKNOWN) {
            script_tell(s, "%s", script_ms(span->run_queue, a));
        }
        script_cost(s, "gc", span->gc);
        script_cost(s, "off", span->off_cpu);
    }
    script_tell(s, ";");
}

static inline uint16_t script_identity(void *context, struct slice name) {
    struct script *s = context;
    char text[8] = {0};
    assert_true(name.len < sizeof text);
    memcpy(text, name.data, name.len);
    s->named++;
    return (uint16_t)atoi(text);
}

static inline void script_never_returns(void *context, uint16_t tier) {
    struct script *s = context;
    size_t len = strlen(s->never);
    assert_true(len + 1 < sizeof s->never);
    s->never[len] = (char)('a' + tier - 1);
}

static inline void script_stale(void *context, uint16_t tier, uint64_t over) {
    (void)over;
    struct script *s = context;
    size_t len = strlen(s->stale);
    if (len + 1 < sizeof s->stale) {
        s->stale[len] = (char)('a' + tier - 1);
    }
}

static inline struct tracker *script_tracker(struct script *s, bool markers, uint16_t entry) {
    struct tracker_options options = {.timeout_ns = 30000LL * SCRIPT_MS,
                                      .markers = markers,
                                      .entry = entry,
                                      .events = {.context = s,
                                                 .finished = script_finished,
                                                 .identity = script_identity,
                                                 .never_returns = script_never_returns,
                                                 .stale = script_stale}};
    struct tracker *t = tracker_new(s->pool, &options);
    assert_non_null(t);
    return t;
}

// entry: a tier's letter, or 0.
static inline struct script *script_new(bool markers, char entry) {
    struct script *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->pool = request_pool_new();
    assert_non_null(s->pool);
    s->tracker = script_tracker(s, markers, entry ? (uint16_t)(entry - 'a' + 1) : TIER_NONE);
    return s;
}

static inline void script_free(struct script *s) {
    tracker_free(s->tracker);
    assert_int_equal(request_pool_open(s->pool), 0);
    request_pool_free(s->pool);
    free(s);
}

static inline uint64_t script_pid(char process) {
    return (uint64_t)(process - 'A' + 1);
}

static inline int64_t script_ns(double ms) {
    return (int64_t)(ms * SCRIPT_MS + (ms < 0 ? -0.5 : 0.5));
}

// caller: 0, or the function that the call returns to.
static inline struct request_ref script_call_to(struct script *s, uint64_t token, char process,
                                                char tier, double ms, char from, char caller,
                                                unsigned long serial, unsigned long previous) {
    struct tracker_call call = {.pid = script_pid(process),
                                .token = token,
                                .serial = serial,
                                .previous = previous,
                                .full_serial = serial,
                                .full_previous = previous,
                                .from = script_pid(from),
                                .time = script_ns(ms),
                                .tier = (uint16_t)(tier - 'a' + 1),
                                .function = (uint32_t)tier,
                                .caller = (uint32_t)caller};
    return tracker_call(s->tracker, &call);
}

static inline struct request_ref script_call(struct script *s, uint64_t token, char process,
                                             char tier, double ms, char from) {
    return script_call_to(s, token, process, tier, ms, from, 0, 0, 0);
}

static inline void script_spawn(struct script *s, uint64_t token, char process, char child,
                                double ms) {
    struct tracker_call call = {.pid = script_pid(process),
                                .token = token,
                                .from = script_pid(process),
                                .time = script_ns(ms),
                                .function = '!'};
    tracker_spawn(s->tracker, &call);
    if (child) {
        tracker_spawned(s->tracker, call.pid, script_pid(child));
    }
}

// What a process does besides calls. Returns false when the line tells of something else.
static inline bool script_besides(struct script *s, const char *line) {
    unsigned long token, serial, previous;
    char process, other, tier, from;
    double ms, until;
    char word[16];
    int n;
    if ((n = sscanf(line, " none %lu %c %c %c %lf %c", &token, &process, &tier, &other, &ms,
                    &from)) >= 5) {
        script_call_to(s, token, process, tier, ms, n == 6 ? from : process, other, 0, 0);
    } else if (sscanf(line, " send %lu %c %lf %lu", &token, &process, &ms, &serial) == 4) {
        tracker_sent(s->tracker, &(struct tracker_call){.pid = script_pid(process),
                                                        .token = token,
                                                        .from = script_pid(process),
                                                        .full_serial = serial,
                                                        .time = script_ns(ms)});
    } else if ((n = sscanf(line, " take %lu %c %lf %c %lu %lu", &token, &process, &ms, &from,
                           &serial, &previous)) >= 5) {
        tracker_taken(s->tracker, &(struct tracker_call){.pid = script_pid(process),
                                                         .token = token,
                                                         .from = script_pid(from),
                                                         .serial = serial,
                                                         .previous = n == 6 ? previous : 0,
                                                         .full_serial = serial,
                                                         .full_previous = n == 6 ? previous : 0,
                                                         .time = script_ns(ms)});
    } else if (sscanf(line, " to %c %c %lf", &process, &other, &ms) == 3) {
        tracker_return_to(s->tracker, script_pid(process), (uint32_t)other, script_ns(ms));
    } else if (sscanf(line, " spawn %lu %c %c %lf", &token, &process, &other, &ms) == 4) {
        script_spawn(s, token, process, other, ms);
    } else if (sscanf(line, " raise %lu %c %lf", &token, &process, &ms) == 3) {
        script_spawn(s, token, process, 0, ms);
    } else if (sscanf(line, " die %c %lf", &process, &ms) == 2) {
        tracker_exited(s->tracker, script_pid(process), script_ns(ms));
    } else if (sscanf(line, " gc %c %lf %lf", &process, &ms, &until) == 3) {
        tracker_pause(s->tracker, script_pid(process), PAUSE_GC, true, script_ns(ms));
        tracker_pause(s->tracker, script_pid(process), PAUSE_GC, false, script_ns(until));
    } else if (sscanf(line, " off %c %lf %lf", &process, &ms, &until) == 3) {
        tracker_pause(s->tracker, script_pid(process), PAUSE_OFF_CPU, true, script_ns(ms));
        tracker_pause(s->tracker, script_pid(process), PAUSE_OFF_CPU, false, script_ns(until));
    } else if ((n = sscanf(line, " enter %lu %c %c %lf %lu %c", &token, &process, &tier, &ms,
                           &serial, &from)) >= 4) {
        struct tracker_call call = {.pid = script_pid(process),
                                    .serial = n >= 5 ? serial : 0,
                                    .token = token,
                                    .from = script_pid(n == 6 ? from : process),
                                    .time = script_ns(ms),
                                    .tier = (uint16_t)(tier - 'a' + 1),
                                    .function = (uint32_t)tier};
        tracker_enter(s->tracker, &call);
    } else if (sscanf(line, " blind %lu %c %c %c %lf", &token, &process, &tier, &other, &ms) == 5) {
        struct tracker_call call = {.pid = script_pid(process),
                                    .token = token,
                                    .from = script_pid(process),
                                    .time = script_ns(ms),
                                    .tier = (uint16_t)(tier - 'a' + 1),
                                    .function = (uint32_t)tier,
                                    .caller = (uint32_t)other};
        tracker_enter(s->tracker, &call);
    } else if (sscanf(line, " says %lu %c %lf %15s", &token, &process, &ms, word) == 4) {
        struct tracker_call call = {.pid = script_pid(process),
                                    .token = token,
                                    .from = script_pid(process),
                                    .time = script_ns(ms)};
        bool within = strcmp(word, "within") == 0;
        tracker_says(s->tracker, &call,
                     within                         ? SAYS_WITHIN
                     : strcmp(word, "no_more") == 0 ? SAYS_NO_MORE
                                                    : SAYS_FROM_NOW);
    } else if (sscanf(line, " upgrade %lu %c %lf", &token, &process, &ms) == 3) {
        struct tracker_call call = {.pid = script_pid(process),
                                    .token = token,
                                    .from = script_pid(process),
                                    .time = script_ns(ms)};
        tracker_upgraded(s->tracker, &call);
    } else if (sscanf(line, " asked %lu %c %lf %lu", &token, &process, &ms, &serial) == 4) {
        // by a span whose ids and flags all have that byte
        struct tracker_call call = {.pid = script_pid(process),
                                    .token = token,
                                    .from = script_pid(process),
                                    .time = script_ns(ms)};
        struct trace_parent parent;
        memset(&parent, (int)serial, sizeof parent);
        tracker_asked_for(s->tracker, &call, &parent);
    } else if (sscanf(line, " leftout %c", &process) == 1) {
        tracker_left_out(s->tracker, script_pid(process));
    } else if (sscanf(line, " gap %lf %lf", &ms, &until) == 2) {
        tracker_gap(s->tracker, script_ns(ms), script_ns(until));
    } else {
        return false;
    }
    return true;
}

// The end marker without the script.
static inline void script_end(struct tracker *t, uint64_t token, uint64_t pid, bool error,
                              int64_t time) {
    tracker_end(t, &(struct tracker_end){.token = token, .pid = pid, .time = time, .error = error});
}

static inline void script_command(struct script *s, const char *line) {
    unsigned long token, serial = 0, previous = 0, shown;
    char process, tier, from;
    double ms;
    int n;
    char word[16];
    if (script_besides(s, line)) {
    } else if ((n = sscanf(line, " begin %lu %c %lf %15s", &token, &process, &ms, word)) >= 3) {
        struct tracker_call call = {.pid = (uint64_t)(process - 'A' + 1),
                                    .token = token,
                                    .from = (uint64_t)(process - 'A' + 1),
                                    .time = (int64_t)(ms * SCRIPT_MS)};
        struct request_ref ref = tracker_begin(s->tracker, &call);
        if (n == 4) {
            tracker_name(s->tracker, ref, (uint16_t)atoi(word));
        }
    } else if ((n = sscanf(line, " web %lu %c %lf %15s", &token, &process, &ms, word)) >= 3) {
        struct tracker_call call = {.pid = script_pid(process),
                                    .token = token,
                                    .from = script_pid(process),
                                    .time = script_ns(ms)};
        struct request_ref ref = tracker_web_begin(s->tracker, &call);
        if (n == 4) {
            tracker_name_begun(s->tracker, ref, slice_text(word));
        }
    } else if (sscanf(line, " end %lu %c %lf shows %lu", &token, &process, &ms, &shown) == 4) {
        tracker_end(s->tracker, &(struct tracker_end){.token = token,
                                                      .pid = script_pid(process),
                                                      .time = script_ns(ms),
                                                      .shown = shown});
    } else if (sscanf(line, " end %lu %c %lf serial %lu", &token, &process, &ms, &serial) == 4) {
        tracker_end(s->tracker, &(struct tracker_end){.token = token,
                                                      .pid = script_pid(process),
                                                      .time = script_ns(ms),
                                                      .serial = serial});
    } else if ((n = sscanf(line, " end %lu %c %lf %15s", &token, &process, &ms, word)) >= 3) {
        struct tracker_end end = {.token = token,
                                  .pid = (uint64_t)(process - 'A' + 1),
                                  .time = (int64_t)(ms * SCRIPT_MS),
                                  .error = n == 4 && strcmp(word, "error") == 0,
                                  .token_lost = n == 4 && strcmp(word, "astray") == 0,
                                  .by_helper = n == 4 && strcmp(word, "helper") == 0,
                                  .sending = n == 4 && strcmp(word, "sending") == 0};
        tracker_end(s->tracker, &end);
    } else if ((n = sscanf(line, " call %lu %c %c %lf %c %lu %lu", &token, &process, &tier, &ms,
                           &from, &serial, &previous)) >= 4) {
        script_call_to(s, token, process, tier, ms, n >= 5 ? from : process, 0, serial, previous);
    } else if (sscanf(line, " ret %c %c %lf", &process, &tier, &ms) == 3) {
        tracker_return(s->tracker, (uint64_t)(process - 'A' + 1), (uint16_t)(tier - 'a' + 1), false,
                       (int64_t)(ms * SCRIPT_MS));
    } else if (sscanf(line, " exc %c %c %lf", &process, &tier, &ms) == 3) {
        tracker_return(s->tracker, (uint64_t)(process - 'A' + 1), (uint16_t)(tier - 'a' + 1), true,
                       (int64_t)(ms * SCRIPT_MS));
    } else if (sscanf(line, " now %lf", &ms) == 1) {
        tracker_advance(s->tracker, (int64_t)(ms * SCRIPT_MS));
    } else if (sscanf(line, " lost %lf", &ms) == 1) {
        tracker_lost(s->tracker, script_ns(ms));
    } else if (sscanf(line, " %15s", word) == 1 && strcmp(word, "lost") == 0) {
        tracker_lost(s->tracker, INT64_MIN);
    } else if (sscanf(line, " %15s", word) == 1 && strcmp(word, "reset") == 0) {
        tracker_reset(s->tracker);
    } else if (sscanf(line, " %15s", word) == 1) {
        fail_msg("no command: %s", line);
    }
    struct request_counts more = tracker_take_counts(s->tracker);
    s->counts.orphan_returns += more.orphan_returns;
    s->counts.stale_calls += more.stale_calls;
    s->counts.refused_calls += more.refused_calls;
    s->counts.refused_requests += more.refused_requests;
    s->counts.unwound_frames += more.unwound_frames;
    s->counts.ambiguous_returns += more.ambiguous_returns;
    s->counts.lost_tokens += more.lost_tokens;
    s->counts.recredited_calls += more.recredited_calls;
}

static inline void script_run(struct script *s, const char *commands) {
    char *copy = strdup(commands), *rest = copy, *line;
    assert_non_null(copy);
    while ((line = strsep(&rest, ";"))) {
        script_command(s, line);
    }
    free(copy);
}

// What finished since the last time.
static inline void script_expect(struct script *s, const char *expected) {
    s->told[s->len] = 0;
    if (strcmp(s->told, expected) != 0) {
        fail_msg("\n  told     %s\n  expected %s", s->told, expected);
    }
    s->len = 0;
    s->told[0] = 0;
}

static inline void script_expect_counts(struct script *s, uint64_t orphans, uint64_t stale,
                                        uint64_t refused) {
    assert_int_equal(s->counts.orphan_returns, orphans);
    assert_int_equal(s->counts.stale_calls, stale);
    assert_int_equal(s->counts.refused_calls, refused);
}

static inline void script_expect_joins(struct script *s, uint64_t unwound, uint64_t ambiguous,
                                       uint64_t lost_tokens) {
    assert_int_equal(s->counts.unwound_frames, unwound);
    assert_int_equal(s->counts.ambiguous_returns, ambiguous);
    assert_int_equal(s->counts.lost_tokens, lost_tokens);
}

// A whole script with markers, and what finished of it once everything is over; nothing may be
// orphan or refused, and only what is told to be open is stale.
static inline void script_check(const char *commands, const char *expected) {
    struct script *s = script_new(true, 0);
    uint64_t open = 0;
    for (const char *at = strstr(expected, " open"); at; at = strstr(at + 1, " open")) {
        open++;
    }
    script_run(s, commands);
    script_run(s, "now 60000");
    script_expect(s, expected);
    script_expect_counts(s, 0, open, 0);
    script_free(s);
}
