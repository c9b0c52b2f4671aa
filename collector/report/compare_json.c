// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/text_time.h"
#include "base/time_math.h"
#include "codec/json.h"
#include "report/compare.h"
#include "report/trust.h"

static void key_number(struct json *j, const char *key, const struct compare_number *n, double unit,
                       int decimals) {
    json_key(j, key);
    json_open(j, '{');
    json_key_number(j, "before", n->before / unit, decimals);
    json_key_number(j, "after", n->after / unit, decimals);
    json_key(j, "sure");
    json_bool(j, n->sure);
    json_close(j, '}');
}

// before and after: the names of both sides.
static void part(struct json *j, const struct compare_part *p, const char *before,
                 const char *after) {
    static const char *const kinds[] = {[COMPARE_SELF] = "self",
                                        [COMPARE_WAITING] = "waiting",
                                        [COMPARE_UNCOVERED] = "uncovered",
                                        [COMPARE_PARALLEL] = "parallel"};
    json_open(j, '{');
    json_key_text(j, "kind", kinds[p->kind]);
    json_key(j, "tier");
    p->tier ? json_text(j, p->tier) : json_null(j);
    json_key_number(j, before, p->before_ns / 1e3, 3);
    json_key_number(j, after, p->after_ns / 1e3, 3);
    json_close(j, '}');
}

static void row(struct json *j, const struct compare_row *r) {
    static const char *const splits[] = {
        [COMPARE_APART] = "apart", [COMPARE_IN_SELF] = "in_self", [COMPARE_MIXED] = "mixed"};
    static const char *const quantiles[COMPARE_QUANTILES] = {"p50_us", "p90_us", "p99_us",
                                                             "p999_us"};
    json_open(j, '{');
    json_key_text(j, "identity", r->identity);
    json_key_text(j, "tier", r->tier);
    json_key_int(j, "calls_before", r->before ? (int64_t)r->before->calls : 0);
    json_key_int(j, "calls_after", r->after ? (int64_t)r->after->calls : 0);
    key_number(j, "mean_us", &r->mean_ns, 1e3, 3);
    for (int i = 0; i < COMPARE_QUANTILES; i++) {
        key_number(j, quantiles[i], &r->quantiles_ns[i], 1e3, 3);
    }
    key_number(j, "errors", &r->errors, 1, 6);
    key_number(j, "per_s", &r->per_s, 1, 3);
    json_key_text(j, "waiting", splits[r->split]);
    json_key(j, "parts");
    json_open(j, '[');
    for (uint32_t i = 0; i < r->part_count; i++) {
        part(j, &r->parts[i], "before_us", "after_us");
    }
    json_close(j, ']');
    json_close(j, '}');
}

// A time, null where there is no data.
static void key_time(struct json *j, const char *key, const struct query_sums *sums,
                     int64_t seconds) {
    char text[TEXT_TIME_BYTES];
    json_key(j, key);
    if (sums->count > 0 || sums->has_ledger) {
        json_text(j, text_time_format(time_of_seconds(seconds), false, text));
    } else {
        json_null(j);
    }
}

static void stretch(struct json *j, const char *key, const struct query_sums *sums) {
    json_key(j, key);
    json_open(j, '{');
    key_time(j, "from", sums, sums->first_s);
    key_time(j, "until", sums, sums->last_s);
    json_key_int(j, "resolution_s", sums->resolution_s);
    json_key_text(j, "verdict", trust_verdict(sums));
    json_key(j, "bias");
    trust_biased(sums) ? json_text(j, "low") : json_null(j);
    json_close(j, '}');
}

void compare_slow_json(const struct compare *slow, struct json *j) {
    json_open(j, '[');
    for (uint32_t i = 0; i < slow->count; i++) {
        const struct compare_row *r = &slow->rows[i];
        json_open(j, '{');
        json_key_text(j, "identity", r->identity);
        json_key_int(j, "requests", (int64_t)r->after->requests);
        json_key_number(j, "mean_us", r->mean_ns.before / 1e3, 3);
        json_key_number(j, "slow_us", r->mean_ns.after / 1e3, 3);
        json_key(j, "parts");
        json_open(j, '[');
        for (uint32_t k = 0; k < r->part_count; k++) {
            part(j, &r->parts[k], "mean_us", "slow_us");
        }
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
}

void compare_json(const struct compare *c, const struct query_sums *before,
                  const struct query_sums *after, const struct compare *slow, const char *tier,
                  struct buffer *out) {
    struct json j = json_make(out);
    json_open(&j, '{');
    stretch(&j, "before", before);
    stretch(&j, "after", after);
    json_key(&j, "rows");
    json_open(&j, '[');
    for (uint32_t i = 0; i < c->count; i++) {
        if (!tier || strcmp(c->rows[i].tier, tier) == 0) {
            row(&j, &c->rows[i]);
        }
    }
    json_close(&j, ']');
    json_key(&j, "slow");
    compare_slow_json(slow, &j);
    json_close(&j, '}');
    buffer_text(out, "\n");
}
