#include "tool/report.h"

#include <stdio.h>
#include <string.h>

#include "base/text_time.h"
#include "tool/text.h"

enum { LINE_COLUMNS = 118, ITEM_BYTES = 160 };

// The same rule as in the view ledger.
const char *report_verdict(const struct ledger_row *l) {
    if (l->paused_ms > 0) {
        return "paused";
    }
    return l->requests_incomplete > 0 || l->requests_expired > 0 || l->dropped_messages > 0 ||
                   l->orphan_returns > 0 || l->decode_errors > 0 || l->unwound_frames > 0 ||
                   l->ambiguous_returns > 0
               ? "lossy"
               : "ok";
}

// A list, with commas, in lines of LINE_COLUMNS.
struct list {
    struct buffer *out;
    size_t column;
    bool any;
};

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

static void losses(const struct ledger_row *l, struct buffer *out) {
    char text[ITEM_BYTES], paused[TEXT_DURATION_BYTES];
    uint64_t all = l->requests_complete + l->requests_incomplete + l->requests_expired;
    struct list list = {.out = out, .column = strlen(" Lossy:")};
    buffer_text(out, l->paused_ms > 0 ? " Paused:" : " Lossy:");
    if (l->paused_ms > 0) {
        snprintf(text, sizeof text, "tracing was off for %s",
                 text_duration((double)l->paused_ms * 1e6, paused));
        item(&list, text);
    }
    if (l->requests_incomplete > 0) {
        snprintf(text, sizeof text, "%llu of %llu requests incomplete",
                 (unsigned long long)l->requests_incomplete, (unsigned long long)all);
        item(&list, text);
    }
    count(&list, l->requests_expired, "expired", "expired");
    count(&list, l->dropped_messages, "message dropped", "messages dropped");
    count(&list, l->orphan_returns, "orphan return", "orphan returns");
    count(&list, l->unwound_frames, "call without its return", "calls without their return");
    count(&list, l->ambiguous_returns, "ambiguous return", "ambiguous returns");
    count(&list, l->decode_errors, "decode error", "decode errors");
    buffer_text(out, ".\n");
}

static const char *plural(uint64_t n) {
    return n == 1 ? "" : "s";
}

// What to do about it, where something can be done.
static void advice(const struct ledger_row *l, struct buffer *out) {
    if (l->paused_ms > 0 || l->dropped_messages > 0) {
        buffer_text(
            out,
            " The node makes more messages than it can deliver: sample ({sample, {one_in, N}}), or trace "
            "fewer tiers.\n");
    }
    if (l->lost_tokens > 0) {
        buffer_printf(out,
                      " %llu request%s lost the token on the way, as rpc:call and erpc:call make them,\n"
                      " and answers that were worked out for another request. Around rpc and erpc\n"
                      " keep kprof:get_current_label() before such a call, and give it to "
                      "kprof:set_current_label/1 after it.\n",
                      (unsigned long long)l->lost_tokens, plural(l->lost_tokens));
    }
    if (l->ambiguous_returns > 0) {
        buffer_printf(
            out,
            " %llu return%s could be of more than one call: trace the tiers concerned without returns => "
            "none.\n",
            (unsigned long long)l->ambiguous_returns, plural(l->ambiguous_returns));
    }
}

void report_trust(const struct report *r, struct buffer *out) {
    const struct ledger_row *l = &r->sums->ledger;
    size_t before = out->len;
    if (strcmp(report_verdict(l), "ok") != 0) {
        losses(l, out);
    }
    advice(l, out);
    if (l->reloads > 0) {
        buffer_printf(out, " Code was reloaded %llu time%s; requests that were open then are incomplete.\n",
                      (unsigned long long)l->reloads, plural(l->reloads));
    }
    buffer_text(out, out->len > before ? "\n" : "");
}

void report_ledger(const struct report *r, struct buffer *out) {
    const struct ledger_row *l = &r->sums->ledger;
    const struct query_row *requests = r->identity_count > 0 ? report_cell(r, 0, r->tier_count) : NULL;
    uint64_t complete = requests ? requests->calls : 0;
    char from[TEXT_TIME_BYTES], until[TEXT_TIME_BYTES];
    struct list list = {.out = out};
    bool parts = r->identity_count > 0 && strcmp(r->identities[0], "_remote") == 0; // it has no request of its own
    count(&list, complete, parts ? "part of another node's request" : "complete request",
          parts ? "parts of other nodes' requests" : "complete requests");
    if (complete == 0) {
        item(&list, "0 complete requests");
    }
    count(&list, l->requests_unsampled, "unsampled", "unsampled");
    count(&list, l->stale_calls, "call too late", "calls too late");
    buffer_printf(out, "; %s; %s to %s, buckets of %u s\n",
                  strcmp(report_verdict(l), "ok") == 0 ? "nothing lost" : "lost: see above",
                  text_time_format(r->sums->first_s * 1000000000, false, from),
                  text_time_format(r->sums->last_s * 1000000000, false, until), r->sums->resolution_s);
}
