// SPDX-License-Identifier: Apache-2.0
// What a shim sends of a run of stack sampling, in batches, and whole again as it would lie in a
// file: what was taken can be walked, weighed by every metric and group, of all or of a stretch,
// and is the same when it has been copied. Gone through as it comes, by somebody who misses some
// batches, each look is seen or counted as lost.
#include <string.h>

#include "fuzz.h"
#include "model/profile/sample_relay.h"
#include "model/profile/sample_stream.h"
#include "model/profile/sample_taker.h"
#include "model/profile/sample_weights.h"

// The looks at processes, and where they lie.
static void walk(const struct profile *p, uint64_t *looks) {
    struct sample_walk w;
    uint64_t before = 0;
    *looks = 0;
    MUST(sample_walk_begin(&w, p));
    while (sample_walk_next(&w)) {
        MUST(w.us >= before);
        before = w.us;
        if (w.record.kind == SAMPLE_LOOK) {
            MUST(w.record.process < p->samples->process_count);
            MUST(w.states[w.record.process].stack < p->stacks.stack_count);
            ++*looks;
        }
    }
    MUST(!w.damaged);
    sample_walk_end(&w);
}

static int64_t weigh(struct profile *p, struct sample_choice choice) {
    int64_t sum = 0;
    MUST(samples_weigh(p, &choice));
    for (uint32_t i = 0; i < p->weights.count; i++) {
        const struct weight *w = &p->weights.all[i];
        MUST(w->ns >= 0 && profile_key_stack(w->key) < p->stacks.stack_count);
        sum += w->ns;
    }
    return sum;
}

// Copied as the store does it, without other numbers, the records are the same ones.
static void copy(const struct profile *p) {
    static uint32_t same[LIMIT_PROFILE_STACKS];
    struct buffer out = buffer_make(2 * LIMIT_SAMPLE_BYTES);
    for (uint32_t i = 0; i < p->stacks.stack_count; i++) {
        same[i] = i;
    }
    struct slice all = slice_of(p->samples->records.data, p->samples->records.len);
    MUST(samples_renumber(all, same, p->stacks.stack_count, &out));
    MUST(out.len == all.len && (all.len == 0 || memcmp(out.data, all.data, all.len) == 0));
    buffer_free(&out);
}

// Of some requests nothing is known, and some go on.
static bool find(void *user, struct sample_request *r) {
    (void)user;
    r->identity = slice_text(r->label & 2 ? "even" : "odd");
    r->end_us = (int64_t)r->label;
    return r->label & 1;
}

static bool see(void *user, const struct sample_walk *w, uint64_t from_us) {
    uint64_t *before = user;
    MUST(from_us + w->us >= *before);
    *before = from_us + w->us;
    if (w->record.kind == SAMPLE_LOOK) {
        MUST(w->record.process < w->profile->samples->process_count);
        MUST(w->states[w->record.process].stack < w->profile->stacks.stack_count);
    }
    return true;
}

// Batch i gets there unless bit i % 8 says that it does not.
static void stream(const uint8_t *data, size_t size, size_t batch, uint8_t lost) {
    struct sample_stream s;
    struct sample_relay relay = {0};
    struct sample_sum sum;
    struct buffer out = buffer_make(LIMIT_SAMPLE_BYTES);
    uint64_t all = 0, before = 0;
    unsigned i = 0;
    MUST(sample_stream_begin(&s));
    for (size_t at = 0; at < size; at += batch, i++) {
        struct slice part = slice_of(data + at, batch < size - at ? batch : size - at);
        buffer_reset(&out);
        if (!sample_sum(part, false, &sum) || !sample_relay_take(&relay, part, &out)) {
            break;
        }
        all += sum.looks;
        struct slice passed = slice_of(out.data, out.len);
        if (lost >> i % 8 & 1) {
            sample_relay_lose(&relay, passed);
        } else if (sample_stream_take(&s, passed, &(struct sample_eye){&before, see}) !=
                   STREAM_TAKEN) {
            break;
        }
        MUST(s.looks + s.lost + relay.lost == all);
    }
    sample_stream_end(&s);
    buffer_free(&out);
}

// The first byte: how long batches are; the second: the stretch that is weighed, and the batches
// that are lost.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct profile p;
    uint64_t looks;
    if (size < 2) {
        return 0;
    }
    size_t batch = 1 + (size_t)data[0] * 8;
    struct sample_choice stretch = {.metric = FLAME_SAMPLES,
                                    .group = FLAME_BY_STATUS,
                                    .from_us = (data[1] & 15) * 100000U,
                                    .until_us = (data[1] >> 4) * 400000U};
    MUST(profile_init(&p));
    struct sample_taker *t = sample_taker_new(&p);
    MUST(t);
    for (size_t at = 2; at < size; at += batch) {
        if (!sample_taker_take(t, slice_of(data + at, batch < size - at ? batch : size - at))) {
            break;
        }
    }
    if (data[1] & 1) {
        MUST(sample_labels_settle(sample_taker_labels(t), find, NULL));
    }
    sample_taker_free(t);
    walk(&p, &looks);
    MUST(looks == p.samples->counts.looks);
    copy(&p);
    weigh(&p, (struct sample_choice){.kept = true});
    int64_t all = weigh(&p, (struct sample_choice){.metric = FLAME_SAMPLES});
    MUST(weigh(&p, stretch) <= all);
    for (enum flame_metric m = FLAME_SAMPLES; m < FLAME_METRICS; m++) {
        weigh(&p,
              (struct sample_choice){.metric = m, .group = (enum flame_group)(m % FLAME_GROUPS)});
    }
    profile_free(&p);
    stream(data + 2, size - 2, batch, data[1]);
    return 0;
}
