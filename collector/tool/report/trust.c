// SPDX-License-Identifier: Apache-2.0
#include "tool/report/print.h"

#include <stdio.h>
#include <string.h>

#include "base/text_time.h"
#include "base/time_math.h"
#include "report/findings.h"
#include "report/trust.h"
#include "tool/lines.h"
#include "tool/text.h"

enum { TIER_COLUMNS = 40, COUNT_BYTES = 128 };

// -- findings -------------------------------------------------------------------------------------

static void put_count(struct lines *l, const struct finding *of, const struct finding_count *count,
                      const char *stop) {
    struct buffer text = buffer_make(1024);
    buffer_text(&text, count->text);
    if (of->kind == FINDING_STALE) {
        size_t width = text_width(count->name);
        buffer_text(&text, " of ");
        text_fit(&text, count->name, width < TIER_COLUMNS ? width : TIER_COLUMNS);
    }
    buffer_text(&text, stop);
    buffer_append(&text, "", 1);
    lines_piece(l, text.failed ? count->text : (const char *)text.data);
    buffer_free(&text);
}

static void put_finding(const struct finding *f, struct buffer *out) {
    struct lines l = {.out = out};
    const char *end = f->advice ? ":" : ".";
    if (f->title) {
        lines_sentence(&l, f->title, ":");
    }
    if (f->text[0]) {
        lines_sentence(&l, f->text, f->count > 0 ? ":" : end);
    }
    for (uint32_t i = 0; i < f->count; i++) {
        put_count(&l, f, &f->counts[i], i + 1 < f->count ? "," : end);
    }
    if (f->meaning) {
        lines_sentence(&l, f->meaning, "");
    }
    if (f->advice) {
        lines_sentence(&l, f->advice, ".");
    }
    buffer_text(out, "\n");
}

void report_trust(const struct report *r, struct buffer *out) {
    struct findings f;
    findings_make(&f, r->sums);
    for (uint32_t i = 0; i < f.count; i++) {
        put_finding(&f.list[i], out);
    }
    buffer_text(out, f.count > 0 ? "\n" : "");
}

// -- the ledger's line ----------------------------------------------------------------------------

void report_ledger(const struct report *r, struct buffer *out) {
    const struct ledger_row *l = &r->sums->ledger;
    const struct query_row *requests =
        r->identity_count > 0 ? report_cell(r, 0, r->tier_count) : NULL;
    bool parts = r->identity_count > 0 &&
                 strcmp(r->identities[0], "_remote") == 0; // it has no request of its own
    const struct {
        uint64_t n;
        const char *one, *many;
    } counts[] = {
        {requests ? requests->calls : 0,
         parts ? "part of another node's request" : "complete request",
         parts ? "parts of other nodes' requests" : "complete requests"},
        {l->requests_unsampled, "unsampled", "unsampled"},
        {l->stale_calls, "call too late", "calls too late"},
        {l->unknown_outcomes, "call of unknown outcome", "calls of unknown outcome"},
    };
    char from[TEXT_TIME_BYTES], until[TEXT_TIME_BYTES];
    bool ok = strcmp(trust_verdict(r->sums), "ok") == 0;
    struct lines lines = {.out = out};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char text[COUNT_BYTES];
        if (i == 0 || counts[i].n > 0) {
            buffer_text(out, i > 0 ? "," : "");
            snprintf(text, sizeof text, "%llu %s", (unsigned long long)counts[i].n,
                     counts[i].n == 1 ? counts[i].one : counts[i].many);
            lines_piece(&lines, text);
        }
    }
    buffer_printf(
        out, "; %s%s; %s to %s, buckets of %u s\n", trust_completeness(r->sums),
        ok ? "" : ": see above", text_time_format(time_of_seconds(r->sums->first_s), false, from),
        text_time_format(time_of_seconds(r->sums->last_s), false, until), r->sums->resolution_s);
}
