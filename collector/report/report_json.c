// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <string.h>

#include "base/text_time.h"
#include "base/time_math.h"
#include "codec/json.h"
#include "report/findings.h"
#include "report/notes_json.h"
#include "report/trust.h"

static void key_us(struct json *j, const char *key, double ns) {
    json_key_number(j, key, ns / 1000, 3);
}

// null where it is not known.
static void key_some_us(struct json *j, const char *key, bool known, double ns) {
    json_key(j, key);
    known ? json_number(j, ns / 1000, 3) : json_null(j);
}

// What there is of a text, else null.
static void key_some(struct json *j, const char *key, const char *text) {
    json_key(j, key);
    text ? json_text(j, text) : json_null(j);
}

static void names(struct json *j, const char *key, const char *const *list, uint32_t count) {
    json_key(j, key);
    json_open(j, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_text(j, list[i]);
    }
    json_close(j, ']');
}

static void one_row(struct json *j, const struct query_row *row, const struct query_row *request) {
    double requests = request && request->calls ? (double)request->calls : 0;
    bool whole = row == request;
    json_open(j, '{');
    json_key_text(j, "identity", row->identity);
    json_key_text(j, "tier", row->tier);
#define KEY_COUNT(name) json_key_int(j, #name, (int64_t)row->name);
#define KEY_TIME(name) key_us(j, #name "_us", (double)row->name##_ns);
    STAT_WHOLE(KEY_COUNT, KEY_TIME)
#undef KEY_COUNT
#undef KEY_TIME
    key_some_us(j, "waiting_us", row->unsplit == 0, (double)row->waiting_ns);
    key_some_us(j, "parallel_us", row->unsplit == 0 && whole, (double)row->parallel_ns);
    key_us(j, "measured_us", (double)row->measured_ns);
    bool apart = row->mailbox_ns > 0 || row->run_queue_ns > 0;
    key_some_us(j, "mailbox_us", apart, (double)row->mailbox_ns);
    key_some_us(j, "run_queue_us", apart, (double)row->run_queue_ns);
    key_us(j, "mean_us", row->calls ? (double)row->duration_ns / (double)row->calls : 0);
    key_us(j, "stddev_us", query_stddev(row));
    key_us(j, "min_us", (double)row->min_ns);
    key_us(j, "max_us", (double)row->max_ns);
#define KEY_QUANTILE(name, q) key_us(j, #name "_us", query_quantile(row, q));
    STAT_QUANTILES(KEY_QUANTILE, KEY_QUANTILE)
#undef KEY_QUANTILE
    key_us(j, "per_request_us", requests > 0 ? (double)row->total_ns / requests : 0);
    key_us(j, "async_per_request_us", requests > 0 ? (double)row->async_ns / requests : 0);
    key_us(j, "wait_per_request_us", requests > 0 ? (double)row->wait_ns / requests : 0);
    key_some_us(j, "waiting_per_request_us", row->unsplit == 0,
                requests > 0 ? (double)row->waiting_ns / requests : 0);
    json_close(j, '}');
}

static void ledger(struct json *j, const struct query_sums *sums) {
    const struct ledger_row *l = &sums->ledger;
    json_key(j, "ledger");
    json_open(j, '{');
#define KEY_COUNT(column) json_key_int(j, #column, (int64_t)l->column);
    LEDGER_COLUMNS(KEY_COUNT)
#undef KEY_COUNT
    json_key_text(j, "verdict", trust_verdict(sums));
    json_close(j, '}');
    json_key(j, "bias");
    trust_biased(sums) ? json_text(j, "low") : json_null(j);
    json_key(j, "stale_tiers");
    json_open(j, '[');
    for (uint32_t i = 0; i < sums->stale_count; i++) {
        json_open(j, '{');
        json_key_text(j, "tier", sums->stale[i].tier);
        json_key_int(j, "calls", (int64_t)sums->stale[i].calls);
        json_key_int(j, "stale_calls", (int64_t)sums->stale[i].stale_calls);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void finding(struct json *j, const struct finding *f) {
    char since[TEXT_TIME_BYTES];
    json_open(j, '{');
    json_key_text(j, "kind", finding_kind_name(f->kind));
    json_key_text(j, "level", finding_level_name(f->level));
    key_some(j, "since",
             f->since_s == 0 ? NULL : text_time_format(time_of_seconds(f->since_s), false, since));
    key_some(j, "title", f->title);
    key_some(j, "text", f->text[0] ? f->text : NULL);
    json_key(j, "counts");
    json_open(j, '[');
    for (uint32_t i = 0; i < f->count; i++) {
        json_open(j, '{');
        json_key_text(j, "name", f->counts[i].name);
        json_key_int(j, "count", (int64_t)f->counts[i].count);
        json_key(j, "of");
        f->counts[i].of > 0 ? json_int(j, (int64_t)f->counts[i].of) : json_null(j);
        json_key_text(j, "text", f->counts[i].text);
        json_close(j, '}');
    }
    json_close(j, ']');
    key_some(j, "meaning", f->meaning);
    key_some(j, "advice", f->advice);
    json_close(j, '}');
}

static void findings(struct json *j, const struct query_sums *sums) {
    struct findings f;
    findings_make(&f, sums);
    json_key(j, "findings");
    json_open(j, '[');
    for (uint32_t i = 0; i < f.count; i++) {
        finding(j, &f.list[i]);
    }
    json_close(j, ']');
}

void report_json(const struct report *r, const char *tier, const struct compare *slow,
                 const struct note_list *notes, struct buffer *out) {
    struct json j = json_make(out);
    char from[TEXT_TIME_BYTES], until[TEXT_TIME_BYTES];
    bool any = r->sums->count > 0 || r->sums->has_ledger;
    json_open(&j, '{');
    key_some(&j, "from",
             any ? text_time_format(time_of_seconds(r->sums->first_s), false, from) : NULL);
    key_some(&j, "until",
             any ? text_time_format(time_of_seconds(r->sums->last_s), false, until) : NULL);
    json_key_int(&j, "resolution_s", r->sums->resolution_s);
    names(&j, "tiers", r->tiers, r->tier_count);
    names(&j, "identities", r->identities, r->identity_count);
    json_key(&j, "rows");
    json_open(&j, '[');
    for (uint32_t i = 0; i < r->identity_count; i++) {
        const struct query_row *request = report_cell(r, i, r->tier_count);
        for (uint32_t t = 0; t <= r->tier_count; t++) {
            const struct query_row *row =
                report_cell(r, i, (t + r->tier_count) % (r->tier_count + 1)); // "_total" first
            if (row && (!tier || strcmp(row->tier, tier) == 0)) {
                one_row(&j, row, request);
            }
        }
    }
    json_close(&j, ']');
    ledger(&j, r->sums);
    findings(&j, r->sums);
    notes_json(&j, notes);
    if (slow) {
        json_key(&j, "slow");
        compare_slow_json(slow, &j);
    }
    json_close(&j, '}');
    buffer_text(out, "\n");
}
