// SPDX-License-Identifier: Apache-2.0
#include "tool/report/print.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text_amount.h"
#include "base/text_time.h"
#include "base/time_math.h"
#include "report/trust.h"
#include "tool/text.h"

enum { LINE_COLUMNS = 118, ITEM_BYTES = 200, TIER_COLUMNS = 40 };

// -- lists ----------------------------------------------------------------------------------------

// A list, with commas, in lines of LINE_COLUMNS.
struct list {
    struct buffer *out;
    size_t column;
    bool any;
};

static struct list list_begin(struct buffer *out, const char *head) {
    buffer_text(out, head);
    return (struct list){.out = out, .column = text_width(head)};
}

static void item(struct list *l, const char *text) {
    size_t width = text_width(text) + 2;
    buffer_text(l->out, l->any ? "," : "");
    if (l->any && l->column + width > LINE_COLUMNS) {
        buffer_text(l->out, "\n  ");
        l->column = 2;
    }
    buffer_text(l->out, " ");
    buffer_text(l->out, text);
    l->column += width;
    l->any = true;
}

// "3 orphan returns", unless there are none.
static void count(struct list *l, uint64_t n, const char *one, const char *many) {
    char text[ITEM_BYTES];
    if (n > 0) {
        snprintf(text, sizeof text, "%llu %s", (unsigned long long)n, n == 1 ? one : many);
        item(l, text);
    }
}

// A column of the ledger, and what one and many of it are called.
struct counted {
    size_t at;
    const char *one, *many;
};
#define COUNTED(column, one, many)                                                                 \
    { offsetof(struct ledger_row, column), one, many }

static void counts(struct list *l, const struct ledger_row *row, const struct counted *all,
                   size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint64_t number;
        memcpy(&number, (const char *)row + all[i].at, sizeof number);
        count(l, number, all[i].one, all[i].many);
    }
}

static void off_for(struct list *l, uint64_t ms, const char *why) {
    char text[ITEM_BYTES], time[TEXT_DURATION_BYTES];
    if (ms > 0) {
        snprintf(text, sizeof text, "tracing was off for %s %.80s",
                 text_duration((double)ms * 1e6, time), why);
        item(l, text);
    }
}

// -- what is wrong --------------------------------------------------------------------------------

static void losses(const struct ledger_row *l, const char *head, struct buffer *out) {
    static const struct counted what[] = {
        COUNTED(requests_expired, "expired", "expired"),
        COUNTED(dropped_messages, "message dropped", "messages dropped"),
        COUNTED(orphan_returns, "orphan return", "orphan returns"),
        COUNTED(unwound_frames, "call without its return", "calls without their return"),
        COUNTED(ambiguous_returns, "ambiguous return", "ambiguous returns"),
        COUNTED(decode_errors, "decode error", "decode errors"),
        COUNTED(unwritten_rows, "row not written", "rows not written"),
    };
    char text[ITEM_BYTES];
    struct list list = list_begin(out, head);
    snprintf(text, sizeof text, "by the guard (%llu trip%s)", (unsigned long long)l->trips,
             text_plural(l->trips));
    off_for(&list, l->tripped_ms, l->trips > 0 ? text : "by the guard");
    off_for(&list, l->away_ms, "without a collector");
    off_for(&list, l->paused_ms, "as asked for");
    if (l->requests_incomplete > 0) {
        snprintf(text, sizeof text, "%llu of %.0f requests incomplete",
                 (unsigned long long)l->requests_incomplete, trust_requests(l));
        item(&list, text);
    }
    counts(&list, l, what, sizeof what / sizeof *what);
    buffer_text(out, ".\n");
}

// Why requests are incomplete.
static void reasons(const struct ledger_row *l, struct buffer *out) {
    static const struct counted why[] = {
        COUNTED(incomplete_loss, "as messages were lost", "as messages were lost"),
        COUNTED(incomplete_cause, "as a call may be another's", "as a call may be another's"),
        COUNTED(incomplete_token, "lost its token", "lost their token"),
        COUNTED(incomplete_return, "without all its returns", "without all their returns"),
        COUNTED(incomplete_reload, "while a function was not traced",
                "while a function was not traced"),
        COUNTED(incomplete_large, "with more calls than are taken",
                "with more calls than are taken"),
        COUNTED(incomplete_room, "without room in the collector", "without room in the collector"),
        COUNTED(incomplete_end, "as the trace began or ended", "as the trace began or ended"),
    };
    size_t before = out->len;
    struct list list = list_begin(out, " Incomplete:");
    counts(&list, l, why, sizeof why / sizeof *why);
    if (list.any) {
        buffer_text(out, ".\n");
    } else {
        out->len = before;
    }
}

static void bias(const struct query_sums *sums, struct buffer *out) {
    if (trust_biased(sums)) {
        buffer_printf(
            out,
            " Biased: %llu of %.0f requests are missing, long ones more often than short ones.\n"
            "   The true means and percentiles are higher than those below.\n",
            (unsigned long long)trust_long_missing(&sums->ledger), trust_requests(&sums->ledger));
    }
}

// Calls whose request is over, and where.
static void stale(const struct query_sums *sums, struct buffer *out) {
    char text[ITEM_BYTES];
    if (!trust_stale(sums)) {
        return;
    }
    char of[32] = "";
    // else they are late ones of calls before this time
    if (sums->ledger.stale_calls <= sums->ledger.calls) {
        snprintf(of, sizeof of, " of %llu", (unsigned long long)sums->ledger.calls);
    }
    snprintf(text, sizeof text, " Unclear: %llu%s calls came when their request was over%s",
             (unsigned long long)sums->ledger.stale_calls, of, sums->stale_count > 0 ? ":" : "");
    struct list list = list_begin(out, text);
    for (uint32_t i = 0; i < sums->stale_count; i++) {
        const struct query_stale *tier = &sums->stale[i];
        struct buffer name = buffer_make(1024);
        size_t width = text_width(tier->tier);
        text_fit(&name, tier->tier, width < TIER_COLUMNS ? width : TIER_COLUMNS);
        buffer_append(&name, "", 1);
        snprintf(text, sizeof text, "%llu of %llu of %s", (unsigned long long)tier->stale_calls,
                 (unsigned long long)tier->calls, name.failed ? "?" : (const char *)name.data);
        buffer_free(&name);
        item(&list, text);
    }
    buffer_text(
        out,
        ".\n"
        "   Processes work on under others' tokens, as those do that got a pool's worker, a "
        "lock or a shared answer from\n"
        "   another request: calls may be missing where they belong (shim/README.md, Limits).\n");
}

// -- what to do about it --------------------------------------------------------------------------

static void advice(const struct ledger_row *l, struct buffer *out) {
    if (l->trips > 0 || l->tripped_ms > 0) {
        buffer_text(
            out,
            " The node makes more messages than it can deliver: sample ({sample, {one_in, N}}), "
            "or trace fewer tiers.\n");
    } else if (l->dropped_messages > 0) {
        buffer_text(out,
                    " Messages are dropped when the collector, or the way to it, is too slow, or a "
                    "connection breaks: its log tells.\n");
    }
    if (l->incomplete_cause > 0) {
        buffer_printf(
            out,
            " %llu request%s waited for what another one gave back (a pool's connection, a lock, "
            "a cache's\n"
            "   answer), and whose the next calls were cannot be told: a tier around the function "
            "that waits tells it.\n",
            (unsigned long long)l->incomplete_cause, text_plural(l->incomplete_cause));
    }
    if (l->lost_tokens > 0) {
        buffer_printf(
            out,
            " %llu request%s lost the token on the way, waiting for a connection pool, a lock or "
            "an answer that\n"
            "   was worked out for another one, or in rpc:call and erpc:call to other nodes. Keep\n"
            "   kprof:get_current_label() before such a call, and give it to "
            "kprof:set_current_label/1 after it.\n",
            (unsigned long long)l->lost_tokens, text_plural(l->lost_tokens));
    }
    if (l->requests_expired > 0) {
        buffer_printf(
            out,
            " %llu request%s had no end in time. Where requests take so long, raise the "
            "collector's\n"
            "   --request-timeout. Else nothing tells the end: kprof:clear_token() is not called, "
            "say, or the\n"
            "   entry is a function that loops.\n",
            (unsigned long long)l->requests_expired, text_plural(l->requests_expired));
    }
    if (l->unwritten_rows > 0) {
        buffer_text(
            out,
            " What stands in the database for some rows is malformed: the collector's log tells "
            "which.\n");
    }
    if (l->ambiguous_returns > 0) {
        buffer_printf(
            out,
            " %llu return%s could be of more than one call: trace the tiers concerned without "
            "returns => none.\n",
            (unsigned long long)l->ambiguous_returns, text_plural(l->ambiguous_returns));
    }
}

static void coarse(const struct ledger_row *l, struct buffer *out) {
    if (l->coarse_rows > 0) {
        buffer_text(out,
                    " Coarse: there were more statistics than the memory for them takes, so that "
                    "percentiles may be off by more\n"
                    "   than 1.1 %. Counts, sums, means and extremes are exact.\n");
    }
}

static void reloads(const struct ledger_row *l, struct buffer *out) {
    char text[ITEM_BYTES] = "", time[TEXT_DURATION_BYTES];
    if (l->untraced_ms > 0) {
        snprintf(text, sizeof text, "functions were not traced for %s in all",
                 text_duration((double)l->untraced_ms * 1e6, time));
    }
    if (l->reloads > 0) {
        buffer_printf(
            out,
            " Code was reloaded %llu time%s%s%s;%s requests that were open then are incomplete.\n",
            (unsigned long long)l->reloads, text_plural(l->reloads), text[0] ? ", " : "", text,
            text[0] ? "\n  " : "");
    } else if (text[0]) {
        buffer_printf(out, " Trace flags were taken off by others: %s.\n", text);
    }
}

void report_trust(const struct report *r, struct buffer *out) {
    const struct ledger_row *l = &r->sums->ledger;
    const char *verdict = trust_verdict(r->sums);
    size_t before = out->len;
    if (strcmp(verdict, "paused") == 0) {
        losses(l, " Paused:", out);
    } else if (strcmp(verdict, "lossy") == 0) {
        losses(l, " Lossy:", out);
    } else if (l->incomplete_cause > 0) {
        losses(l, " Unclear:", out);
    }
    reasons(l, out);
    bias(r->sums, out);
    stale(r->sums, out);
    coarse(l, out);
    advice(l, out);
    if (trust_unmarked(l)) {
        char text[TRUST_UNMARKED_BYTES];
        buffer_printf(out, " Armed; %s: %s.\n", trust_unmarked_text(l->unmarked_calls, text),
                      TRUST_UNMARKED_ADVICE);
    }
    reloads(l, out);
    buffer_text(out, out->len > before ? "\n" : "");
}

// How much of what happened the numbers hold, in a few words.
static const char *completeness(const struct query_sums *sums) {
    const struct ledger_row *l = &sums->ledger;
    const char *verdict = trust_verdict(sums);
    if (strcmp(verdict, "ok") != 0) {
        return strcmp(verdict, "unclear") == 0 ? "unclear: see above" : "lost: see above";
    }
    return l->stale_calls > 0 || l->untraced_ms > 0 || l->lost_tokens > 0 ? "no request lost"
                                                                          : "nothing lost";
}

void report_ledger(const struct report *r, struct buffer *out) {
    const struct ledger_row *l = &r->sums->ledger;
    const struct query_row *requests =
        r->identity_count > 0 ? report_cell(r, 0, r->tier_count) : NULL;
    uint64_t complete = requests ? requests->calls : 0;
    char from[TEXT_TIME_BYTES], until[TEXT_TIME_BYTES];
    struct list list = {.out = out};
    bool parts = r->identity_count > 0 &&
                 strcmp(r->identities[0], "_remote") == 0; // it has no request of its own
    count(&list, complete, parts ? "part of another node's request" : "complete request",
          parts ? "parts of other nodes' requests" : "complete requests");
    if (complete == 0) {
        item(&list, "0 complete requests");
    }
    count(&list, l->requests_unsampled, "unsampled", "unsampled");
    count(&list, l->stale_calls, "call too late", "calls too late");
    count(&list, l->unknown_outcomes, "call of unknown outcome", "calls of unknown outcome");
    buffer_printf(out, "; %s; %s to %s, buckets of %u s\n", completeness(r->sums),
                  text_time_format(time_of_seconds(r->sums->first_s), false, from),
                  text_time_format(time_of_seconds(r->sums->last_s), false, until),
                  r->sums->resolution_s);
}
