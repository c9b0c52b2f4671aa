// SPDX-License-Identifier: Apache-2.0
#include "report/series.h"

#include "codec/json.h"
#include "report/notes_json.h"
#include "report/trust.h"

enum { HEAT_SCALE = 4, HEAT_BUCKETS = 64 * HEAT_SCALE };

int64_t series_step(int64_t from_s, int64_t until_s, uint32_t most) {
    static const int64_t steps[] = {1,   2,    5,    10,   20,   30,    60,    120,  300,
                                    600, 1200, 1800, 3600, 7200, 10800, 21600, 43200};
    int64_t least = (until_s - from_s) / most;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i] >= least) {
            return steps[i];
        }
    }
    return (least + 86399) / 86400 * 86400;
}

// -- arrays ---------------------------------------------------------------------------------------

// A value of a step; false: there is none.
typedef bool value_of(const struct series_step *step, double *value);

static bool requests_of(const struct series_step *step, double *value) {
    *value = (double)step->requests;
    return step->has_ledger || step->requests > 0;
}

static bool errors_of(const struct series_step *step, double *value) {
    *value = (double)step->errors;
    return step->has_ledger || step->requests > 0;
}

static bool mean_of(const struct series_step *step, double *value) {
    *value = (double)step->duration_ns / 1e3 / (double)(step->requests ? step->requests : 1);
    return step->requests > 0;
}

static bool max_of(const struct series_step *step, double *value) {
    *value = (double)step->max_ns / 1e3;
    return step->requests > 0;
}

static bool uncovered_of(const struct series_step *step, double *value) {
    *value = (double)step->self_ns / 1e3 / (double)(step->requests ? step->requests : 1);
    return step->requests > 0;
}

static bool waiting_of(const struct series_step *step, double *value) {
    *value = (double)step->waiting_ns / 1e3 / (double)(step->requests ? step->requests : 1);
    return step->requests > 0 && step->unsplit == 0;
}

static bool parallel_of(const struct series_step *step, double *value) {
    *value = (double)step->parallel_ns / 1e3 / (double)(step->requests ? step->requests : 1);
    return step->requests > 0 && step->unsplit == 0;
}

#define QUANTILE_OF(name, q)                                                                       \
    static bool name##_of(const struct series_step *step, double *value) {                         \
        *value = stat_quantile(&step->durations, q, 0, step->max_ns) / 1e3;                        \
        return step->requests > 0;                                                                 \
    }
STAT_QUANTILES(QUANTILE_OF, QUANTILE_OF)
#undef QUANTILE_OF

static void key_values(struct json *j, const char *key, const struct series *series,
                       value_of *take) {
    json_key(j, key);
    json_open(j, '[');
    for (uint32_t i = 0; i < series->count; i++) {
        double value;
        take(&series->steps[i], &value) ? json_number(j, value, 1) : json_null(j);
    }
    json_close(j, ']');
}

// -- tiers ----------------------------------------------------------------------------------------

static void key_per_request(struct json *j, const char *key, const struct series *series,
                            const struct series_tier *tier, size_t field) {
    json_key(j, key);
    json_open(j, '[');
    for (uint32_t i = 0; i < series->count; i++) {
        uint64_t ns = *(const uint64_t *)((const char *)&tier->cells[i] + field);
        uint64_t requests = series->steps[i].requests;
        requests > 0 ? json_number(j, (double)ns / 1e3 / (double)requests, 1) : json_null(j);
    }
    json_close(j, ']');
}

// null also where it is not told apart.
static void key_waiting(struct json *j, const struct series *series,
                        const struct series_tier *tier) {
    json_key(j, "waiting_us");
    json_open(j, '[');
    for (uint32_t i = 0; i < series->count; i++) {
        const struct series_step *step = &series->steps[i];
        step->requests > 0 && step->unsplit == 0
            ? json_number(j, (double)tier->cells[i].waiting_ns / 1e3 / (double)step->requests, 1)
            : json_null(j);
    }
    json_close(j, ']');
}

static void key_tiers(struct json *j, const struct series *series) {
    json_key(j, "tiers");
    json_open(j, '[');
    for (uint32_t i = 0; i < series->tier_count; i++) {
        const struct series_tier *tier = &series->tiers[i];
        json_open(j, '{');
        json_key_text(j, "name", tier->name);
        key_per_request(j, "self_us", series, tier, offsetof(struct series_cell, self_ns));
        key_per_request(j, "wait_us", series, tier, offsetof(struct series_cell, wait_ns));
        key_per_request(j, "async_us", series, tier, offsetof(struct series_cell, async_ns));
        key_waiting(j, series, tier);
        json_close(j, '}');
    }
    json_close(j, ']');
}

// -- trust, heat, marks ---------------------------------------------------------------------------

static void key_verdicts(struct json *j, const struct series *series) {
    json_key(j, "verdicts");
    json_open(j, '[');
    for (uint32_t i = 0; i < series->count; i++) {
        struct query_sums sums = {.ledger = series->steps[i].ledger};
        series->steps[i].has_ledger ? json_text(j, trust_verdict(&sums)) : json_null(j);
    }
    json_close(j, ']');
}

static void heat_of(struct json *j, const struct histogram *h) {
    uint64_t counts[HEAT_BUCKETS] = {0};
    uint32_t first = HEAT_BUCKETS, last = 0;
    for (uint32_t i = 0; i < h->len; i++) {
        if (h->counts[i] > 0) {
            uint32_t bucket = ((h->first + i) << h->coarse) * HEAT_SCALE / (HISTOGRAM_BUCKETS / 64);
            bucket = bucket < HEAT_BUCKETS ? bucket : HEAT_BUCKETS - 1;
            counts[bucket] += h->counts[i];
            first = bucket < first ? bucket : first;
            last = bucket > last ? bucket : last;
        }
    }
    json_open(j, '[');
    if (first < HEAT_BUCKETS) {
        json_int(j, first);
        for (uint32_t i = first; i <= last; i++) {
            json_int(j, (int64_t)counts[i]);
        }
    }
    json_close(j, ']');
}

static void key_heat(struct json *j, const struct series *series) {
    json_key(j, "heat");
    json_open(j, '{');
    json_key_int(j, "scale", HEAT_SCALE);
    json_key(j, "counts");
    json_open(j, '[');
    for (uint32_t i = 0; i < series->count; i++) {
        heat_of(j, &series->steps[i].durations);
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void mark(struct json *j, int64_t at_s, const char *kind, uint64_t amount) {
    if (amount > 0) {
        json_open(j, '{');
        json_key_int(j, "at_s", at_s);
        json_key_text(j, "kind", kind);
        json_key_int(j, "amount", (int64_t)amount);
        json_close(j, '}');
    }
}

static void mark_profile(struct json *j, const struct profile_line *line) {
    const struct profile_head *h = &line->head;
    json_open(j, '{');
    json_key_int(j, "at_s", h->end_ns / 1000000000);
    json_key_text(j, "kind", "profile");
    json_key_int(j, "amount", line->id);
    json_key_text(j, "of", h->kind == PROFILE_SAMPLES ? "samples" : "full");
    json_key_int(j, "from_s", h->begin_ns / 1000000000);
    json_key_text(j, "node", h->node);
    json_key_text(j, "text", h->name);
    json_key_text(j, "label", h->label);
    json_key_text(j, "trigger", h->trigger);
    json_close(j, '}');
}

static void mark_note(struct json *j, const struct note *note) {
    json_open(j, '{');
    json_key_int(j, "at_s", note->at_ns / 1000000000);
    json_key_text(j, "kind", "note");
    json_key_int(j, "amount", note->id);
    note_keys(j, note);
    json_close(j, '}');
}

static void key_marks(struct json *j, const struct series *series,
                      const struct profile_list *profiles, const struct note_list *notes) {
    json_key(j, "marks");
    json_open(j, '[');
    for (uint32_t i = 0; i < series->count; i++) {
        const struct ledger_row *l = &series->steps[i].ledger;
        int64_t at_s = series->first_s + i * series->step_s;
        mark(j, at_s, "trips", l->trips);
        mark(j, at_s, "tripped_ms", l->tripped_ms);
        mark(j, at_s, "lowered_ms", l->lowered_ms);
        mark(j, at_s, "paused_ms", l->paused_ms);
        mark(j, at_s, "away_ms", l->away_ms);
        mark(j, at_s, "reloads", l->reloads);
    }
    for (uint32_t i = 0; i < profiles->count; i++) {
        mark_profile(j, &profiles->lines[i]);
    }
    for (uint32_t i = 0; i < notes->count; i++) {
        mark_note(j, &notes->notes[i]);
    }
    json_close(j, ']');
}

void series_json(const struct series *series, const struct profile_list *profiles,
                 const struct note_list *notes, struct buffer *out) {
    struct json j = json_make(out);
    json_open(&j, '{');
    json_key_int(&j, "start_s", series->first_s);
    json_key_int(&j, "step_s", series->step_s);
    json_key_int(&j, "resolution_s", series->resolution_s);
    json_key_int(&j, "count", series->count);
    key_values(&j, "requests", series, requests_of);
    key_values(&j, "errors", series, errors_of);
    key_values(&j, "mean_us", series, mean_of);
#define KEY_QUANTILE(name, q) key_values(&j, #name "_us", series, name##_of);
    STAT_QUANTILES(KEY_QUANTILE, KEY_QUANTILE)
#undef KEY_QUANTILE
    key_values(&j, "max_us", series, max_of);
    key_values(&j, "uncovered_us", series, uncovered_of);
    key_values(&j, "waiting_us", series, waiting_of);
    key_values(&j, "parallel_us", series, parallel_of);
    key_tiers(&j, series);
    key_verdicts(&j, series);
    key_heat(&j, series);
    key_marks(&j, series, profiles, notes);
    json_close(&j, '}');
    buffer_text(out, "\n");
}
