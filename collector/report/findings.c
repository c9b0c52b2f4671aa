// SPDX-License-Identifier: Apache-2.0
#include "report/findings.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text_amount.h"
#include "report/trust.h"

const char *finding_kind_name(enum finding_kind kind) {
#define KIND_NAME(kind, name) [FINDING_##kind] = (name),
    static const char *const names[FINDINGS] = {FINDING_KINDS(KIND_NAME)};
#undef KIND_NAME
    return names[kind];
}

const char *finding_level_name(enum finding_level level) {
    static const char *const names[] = {"note", "warning", "problem"};
    return names[level];
}

// -- making one -----------------------------------------------------------------------------------

// The next finding, empty; what is added to it goes to the last one.
static struct finding *begin(struct findings *f, enum finding_kind kind, enum finding_level level,
                             const char *title) {
    struct finding *one = &f->list[f->count++];
    one->kind = kind;
    one->level = level;
    one->since_s = 0;
    one->title = title;
    one->text[0] = 0;
    one->counts = &f->counts[f->counted];
    one->count = 0;
    one->meaning = one->advice = NULL;
    return one;
}

static void since(struct finding *one, int64_t first_s) {
    if (first_s != 0 && (one->since_s == 0 || first_s < one->since_s)) {
        one->since_s = first_s;
    }
}

__attribute__((format(printf, 2, 3))) static void say(struct finding *one, const char *format,
                                                      ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(one->text, sizeof one->text, format, args);
    va_end(args);
}

__attribute__((format(printf, 5, 6))) static void
add_count(struct findings *f, const char *name, uint64_t n, uint64_t of, const char *format, ...) {
    struct finding_count *count = &f->counts[f->counted++];
    count->name = name;
    count->count = n;
    count->of = of;
    va_list args;
    va_start(args, format);
    vsnprintf(count->text, sizeof count->text, format, args);
    va_end(args);
    f->list[f->count - 1].count++;
}

// A column of the ledger, and what one and many of it are called.
struct column {
    const char *name;
    size_t at, since_at;
    const char *one, *many;
};
#define COLUMN(column, one, many)                                                                  \
    {                                                                                              \
#column, offsetof(struct ledger_row, column), offsetof(struct ledger_since, column), one,  \
            many                                                                                   \
    }

static void add_columns(struct findings *f, const struct query_sums *sums,
                        const struct column *columns, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct column *c = &columns[i];
        uint64_t number;
        int64_t first_s;
        memcpy(&number, (const char *)&sums->ledger + c->at, sizeof number);
        memcpy(&first_s, (const char *)&sums->since + c->since_at, sizeof first_s);
        if (number > 0) {
            add_count(f, c->name, number, 0, "%llu %s", (unsigned long long)number,
                      number == 1 ? c->one : c->many);
            since(&f->list[f->count - 1], first_s);
        }
    }
}

// An edited database may tell of more requests than an integer holds.
static uint64_t requests(const struct ledger_row *l) {
    double n = trust_requests(l);
    return n < (double)UINT64_MAX ? (uint64_t)n : UINT64_MAX;
}

static void add_off(struct findings *f, const char *name, uint64_t ms, int64_t first_s,
                    const char *why) {
    char time[TEXT_DURATION_BYTES];
    if (ms > 0) {
        add_count(f, name, ms, 0, "tracing was off for %s %s",
                  text_duration((double)ms * 1e6, time), why);
        since(&f->list[f->count - 1], first_s);
    }
}

// -- what is wrong --------------------------------------------------------------------------------

static void find_losses(struct findings *f, const struct query_sums *sums, enum finding_kind kind,
                        enum finding_level level, const char *title) {
    static const struct column columns[] = {
        COLUMN(requests_expired, "request expired", "requests expired"),
        COLUMN(dropped_messages, "message dropped", "messages dropped"),
        COLUMN(orphan_returns, "return without its call", "returns without their call"),
        COLUMN(unwound_frames, "call without its return", "calls without their return"),
        COLUMN(ambiguous_returns, "ambiguous return", "ambiguous returns"),
        COLUMN(decode_errors, "message not understood", "messages not understood"),
        COLUMN(unwritten_rows, "row not written", "rows not written"),
    };
    const struct ledger_row *l = &sums->ledger;
    struct finding *one = begin(f, kind, level, title);
    char guard[64] = "by the guard";
    if (l->trips > 0) {
        snprintf(guard, sizeof guard, "by the guard (%llu trip%s)", (unsigned long long)l->trips,
                 text_plural(l->trips));
    }
    add_off(f, "tripped_ms", l->tripped_ms, sums->since.tripped_ms, guard);
    add_off(f, "away_ms", l->away_ms, sums->since.away_ms, "without a collector");
    add_off(f, "paused_ms", l->paused_ms, sums->since.paused_ms, "as asked for");
    if (l->requests_incomplete > 0) {
        add_count(f, "requests_incomplete", l->requests_incomplete, requests(l),
                  "%llu of %.0f requests incomplete", (unsigned long long)l->requests_incomplete,
                  trust_requests(l));
        since(one, sums->since.requests_incomplete);
    }
    add_columns(f, sums, columns, sizeof columns / sizeof *columns);
}

// Why requests are incomplete.
static void find_reasons(struct findings *f, const struct query_sums *sums,
                         enum finding_level level) {
    static const struct column columns[] = {
        COLUMN(incomplete_loss, "because messages were lost", "because messages were lost"),
        COLUMN(incomplete_cause, "because a call may be another request's",
               "because a call may be another request's"),
        COLUMN(incomplete_token, "that lost its token", "that lost their token"),
        COLUMN(incomplete_return, "without all its returns", "without all their returns"),
        COLUMN(incomplete_reload, "while a function was not traced",
               "while a function was not traced"),
        COLUMN(incomplete_large, "with more calls than the collector takes",
               "with more calls than the collector takes"),
        COLUMN(incomplete_room, "because the collector had no room",
               "because the collector had no room"),
        COLUMN(incomplete_end, "while the trace began or ended", "while the trace began or ended"),
    };
    struct finding *one = begin(f, FINDING_INCOMPLETE, level, "Incomplete");
    add_columns(f, sums, columns, sizeof columns / sizeof *columns);
    f->count -= one->count == 0;
}

static void find_verdict(struct findings *f, const struct query_sums *sums) {
    const char *verdict = trust_verdict(sums);
    enum finding_level level = FINDING_PROBLEM;
    if (strcmp(verdict, "paused") == 0) {
        find_losses(f, sums, FINDING_PAUSED, level, "Paused");
    } else if (strcmp(verdict, "lossy") == 0) {
        find_losses(f, sums, FINDING_LOSSY, level, "Lossy");
    } else if (sums->ledger.incomplete_cause > 0) {
        level = FINDING_WARNING;
        find_losses(f, sums, FINDING_UNCLEAR, level, "Unclear");
    }
    find_reasons(f, sums, level);
}

static void find_bias(struct findings *f, const struct query_sums *sums) {
    if (trust_biased(sums)) {
        struct finding *one = begin(f, FINDING_BIASED, FINDING_WARNING, "Biased");
        since(one, sums->since.requests_incomplete);
        since(one, sums->since.requests_expired);
        say(one, "%llu of %.0f requests are missing, long ones more often than short ones",
            (unsigned long long)trust_long_missing(&sums->ledger), trust_requests(&sums->ledger));
        one->meaning = "The true means and percentiles are higher than those shown.";
    }
}

// Calls whose request is over, and where.
static void find_stale(struct findings *f, const struct query_sums *sums) {
    if (!trust_stale(sums)) {
        return;
    }
    struct finding *one = begin(f, FINDING_STALE, FINDING_WARNING, "Unclear");
    char of[32] = "";
    // else they are late ones of calls before this time
    if (sums->ledger.stale_calls <= sums->ledger.calls) {
        snprintf(of, sizeof of, " of %llu", (unsigned long long)sums->ledger.calls);
    }
    since(one, sums->since.stale_calls);
    say(one, "%llu%s calls came when their request was over",
        (unsigned long long)sums->ledger.stale_calls, of);
    for (uint32_t i = 0; i < sums->stale_count; i++) {
        const struct query_stale *tier = &sums->stale[i];
        add_count(f, tier->tier, tier->stale_calls, tier->calls, "%llu of %llu",
                  (unsigned long long)tier->stale_calls, (unsigned long long)tier->calls);
    }
    one->meaning =
        "Some processes went on under the token of another request, which had given them a "
        "pool's worker, a lock or a shared answer. Calls may be missing where they belong "
        "(shim/README.md, Limits).";
}

static void find_coarse(struct findings *f, const struct query_sums *sums) {
    if (sums->ledger.coarse_rows > 0) {
        struct finding *one = begin(f, FINDING_COARSE, FINDING_WARNING, "Coarse");
        since(one, sums->since.coarse_rows);
        say(one,
            "the memory for statistics was full, so percentiles may be off by more than 1.1 %%");
        one->meaning = "Counts, sums, means and extremes are exact.";
    }
}

// -- what to do about it --------------------------------------------------------------------------

static void find_overload(struct findings *f, const struct query_sums *sums) {
    const struct ledger_row *l = &sums->ledger;
    if (l->trips > 0 || l->tripped_ms > 0) {
        struct finding *one = begin(f, FINDING_OVERLOADED, FINDING_PROBLEM, NULL);
        since(one, sums->since.trips);
        since(one, sums->since.tripped_ms);
        say(one, "The node makes more messages than it can deliver");
        one->advice = "sample ({sample, {one_in, N}}), or trace fewer tiers";
    } else if (l->dropped_messages > 0) {
        struct finding *one = begin(f, FINDING_DROPPED, FINDING_PROBLEM, NULL);
        since(one, sums->since.dropped_messages);
        say(one, "Messages are dropped when the collector or the network is too slow, or when a "
                 "connection breaks");
        one->advice = "the collector's log tells which";
    }
}

// Begins a finding on the requests, or the returns, of a column.
static struct finding *find_some(struct findings *f, enum finding_kind kind,
                                 enum finding_level level, uint64_t n, int64_t first_s,
                                 const char *noun, const char *what) {
    struct finding *one = begin(f, kind, level, NULL);
    since(one, first_s);
    say(one, "%llu %s%s %s", (unsigned long long)n, noun, text_plural(n), what);
    return one;
}

static void find_requests(struct findings *f, const struct query_sums *sums) {
    const struct ledger_row *l = &sums->ledger;
    if (l->incomplete_cause > 0) {
        find_some(f, FINDING_LENT, FINDING_WARNING, l->incomplete_cause,
                  sums->since.incomplete_cause, "request",
                  "waited for something of another request (a pool's connection, a lock, a cache's "
                  "answer), and nobody can tell whose the next calls were")
            ->advice = "make the function that waits a tier";
    }
    if (l->lost_tokens > 0) {
        find_some(f, FINDING_LOST_TOKENS, FINDING_PROBLEM, l->lost_tokens, sums->since.lost_tokens,
                  "request",
                  "lost the token on the way: waiting for a connection pool, a lock or another "
                  "request's answer, or in rpc:call or erpc:call to another node")
            ->advice =
            "keep what kprof:get_current_label() gives before such a call, and give it to "
            "kprof:set_current_label/1 after it";
    }
    if (l->requests_expired > 0) {
        find_some(f, FINDING_EXPIRED, FINDING_PROBLEM, l->requests_expired,
                  sums->since.requests_expired, "request", "did not end in time")
            ->advice = "if requests take so long, raise the collector's --request-timeout; if not, "
                       "nothing ends them: kprof:clear_token() may not be called, or the entry "
                       "may be a function that loops";
    }
}

static void find_rest(struct findings *f, const struct query_sums *sums) {
    const struct ledger_row *l = &sums->ledger;
    if (l->unwritten_rows > 0) {
        struct finding *one = begin(f, FINDING_UNWRITTEN, FINDING_PROBLEM, NULL);
        since(one, sums->since.unwritten_rows);
        say(one,
            "Some rows were not written, because the database holds malformed ones in their place");
        one->advice = "the collector's log tells which";
    }
    if (l->ambiguous_returns > 0) {
        find_some(f, FINDING_AMBIGUOUS, FINDING_PROBLEM, l->ambiguous_returns,
                  sums->since.ambiguous_returns, "return", "could belong to more than one call")
            ->advice = "trace these tiers without returns => none";
    }
    if (trust_unmarked(l)) {
        char text[TRUST_UNMARKED_BYTES];
        struct finding *one = begin(f, FINDING_UNMARKED, FINDING_PROBLEM, NULL);
        since(one, sums->since.unmarked_calls);
        say(one, "Armed; %s", trust_unmarked_text(l->unmarked_calls, text));
        one->advice = TRUST_UNMARKED_ADVICE;
    }
}

static void find_reloads(struct findings *f, const struct query_sums *sums) {
    const struct ledger_row *l = &sums->ledger;
    char time[TEXT_DURATION_BYTES];
    text_duration((double)l->untraced_ms * 1e6, time);
    if (l->reloads > 0) {
        struct finding *one = begin(f, FINDING_RELOADED, FINDING_NOTE, NULL);
        since(one, sums->since.reloads);
        say(one, "Code was reloaded %llu time%s%s%s%s", (unsigned long long)l->reloads,
            text_plural(l->reloads),
            l->untraced_ms > 0 ? ", and functions were not traced for " : "",
            l->untraced_ms > 0 ? time : "", l->untraced_ms > 0 ? " in all" : "");
        one->meaning = "Requests that were open then are incomplete.";
    } else if (l->untraced_ms > 0) {
        struct finding *one = begin(f, FINDING_UNTRACED, FINDING_NOTE, NULL);
        since(one, sums->since.untraced_ms);
        say(one, "Somebody else took trace flags off: functions were not traced for %s in all",
            time);
    }
}

void findings_make(struct findings *f, const struct query_sums *sums) {
    f->count = f->counted = 0;
    find_verdict(f, sums);
    find_bias(f, sums);
    find_stale(f, sums);
    find_coarse(f, sums);
    find_overload(f, sums);
    find_requests(f, sums);
    find_rest(f, sums);
    find_reloads(f, sums);
}
