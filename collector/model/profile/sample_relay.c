// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sample_relay.h"

#include "base/limits.h"

// The longest time that one record may tell: whoever takes it looks.
static const uint64_t MOST_US = (uint64_t)LIMIT_SAMPLE_SECONDS * 1000000;

bool sample_sum(struct slice records, bool to_forget, struct sample_sum *sum) {
    struct cursor c = cursor_of(records.data, records.len);
    struct sample_record r;
    *sum = (struct sample_sum){0};
    for (const uint8_t *at = c.at; sample_record_read(&c, &r); at = c.at) {
        if (r.kind == SAMPLE_FORGET && to_forget) {
            sum->forget = at;
            return true;
        }
        if (r.kind == SAMPLE_TIME && r.number > MOST_US) {
            return false;
        }
        sum->us += r.kind == SAMPLE_TIME ? r.number : 0;
        sum->looks +=
            r.kind == SAMPLE_LOOK || r.kind == SAMPLE_UNCHANGED || r.kind == SAMPLE_UNANSWERED;
    }
    return !c.failed;
}

static void lose(struct sample_relay *r, const struct sample_sum *sum) {
    r->us += sum->us;
    r->lost += sum->looks;
}

static void put_time(struct buffer *out, uint64_t us) {
    while (us > 0) {
        uint64_t part = us < MOST_US ? us : MOST_US;
        sample_record_write(out, &(struct sample_record){.kind = SAMPLE_TIME, .number = part});
        us -= part;
    }
}

bool sample_relay_take(struct sample_relay *r, struct slice records, struct buffer *out) {
    struct sample_sum before;
    if (!sample_sum(records, r->behind, &before)) {
        return false;
    }
    if (!r->behind) {
        return records.len == 0 || buffer_append(out, records.data, records.len);
    }
    lose(r, &before);
    if (before.forget) {
        put_time(out, r->us);
        buffer_append(out, before.forget, (size_t)(records.data + records.len - before.forget));
        r->behind = false;
        r->us = 0;
    }
    return !out->failed;
}

void sample_relay_lose(struct sample_relay *r, struct slice passed) {
    struct sample_sum sum;
    if (sample_sum(passed, false, &sum)) { // it was looked at before
        lose(r, &sum);
    }
    r->behind = true;
}
