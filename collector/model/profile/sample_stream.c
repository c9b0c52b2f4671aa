// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sample_stream.h"

#include "model/profile/sample_relay.h"

static const uint64_t MOST_US = UINT64_C(100) * 366 * 86400 * 1000000;

static bool begin(struct sample_stream *s) {
    s->taker = profile_init(&s->profile) ? sample_taker_new(&s->profile) : NULL;
    return s->taker && sample_walk_begin(&s->walk, &s->profile);
}

static void end(struct sample_stream *s) {
    sample_walk_end(&s->walk);
    sample_taker_free(s->taker);
    profile_free(&s->profile);
    s->taker = NULL;
    s->walk = (struct sample_walk){0};
}

bool sample_stream_begin(struct sample_stream *s) {
    *s = (struct sample_stream){0};
    return begin(s);
}

void sample_stream_end(struct sample_stream *s) {
    end(s);
}

static bool is_look(uint8_t kind) {
    return kind == SAMPLE_LOOK || kind == SAMPLE_UNCHANGED || kind == SAMPLE_UNANSWERED;
}

static enum stream_status walk(struct sample_stream *s, uint64_t expected,
                               const struct sample_eye *eye) {
    uint64_t looks = 0;
    if (!sample_walk_again(&s->walk)) {
        return STREAM_NO_MEMORY;
    }
    while (sample_walk_next(&s->walk)) {
        looks += is_look(s->walk.record.kind);
        if (!eye->see(eye->user, &s->walk, s->us)) {
            return STREAM_ENOUGH;
        }
    }
    s->looks += looks;
    s->lost += expected > looks ? expected - looks : 0;
    s->full = s->full || s->profile.stacks.full;
    return s->walk.damaged ? STREAM_DAMAGED : STREAM_TAKEN;
}

// Records in which numbers do not begin anew.
static enum stream_status take(struct sample_stream *s, struct slice records, uint64_t looks,
                               const struct sample_eye *eye) {
    if (!sample_taker_take(s->taker, records)) {
        return STREAM_DAMAGED;
    }
    enum stream_status status = walk(s, looks, eye);
    s->us += sample_taker_clear(s->taker);
    return status == STREAM_TAKEN && s->us > MOST_US ? STREAM_DAMAGED : status;
}

// All that was named is over. The time is not.
static enum stream_status forget(struct sample_stream *s) {
    end(s);
    return begin(s) ? STREAM_TAKEN : STREAM_NO_MEMORY;
}

enum stream_status sample_stream_take(struct sample_stream *s, struct slice records,
                                      const struct sample_eye *eye) {
    enum stream_status status = STREAM_TAKEN;
    while (status == STREAM_TAKEN && records.len > 0) {
        struct sample_sum sum;
        if (!sample_sum(records, true, &sum)) {
            return STREAM_DAMAGED;
        }
        size_t len = sum.forget ? (size_t)(sum.forget - records.data) : records.len;
        status = take(s, slice_of(records.data, len), sum.looks, eye);
        if (status == STREAM_TAKEN && sum.forget) {
            status = forget(s);
            len++; // the record is one byte
        }
        records = slice_of(records.data + len, records.len - len);
    }
    return status;
}
