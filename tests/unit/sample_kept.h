// SPDX-License-Identifier: Apache-2.0
// Keeps what a test tells of a run of stack sampling as a profile, for the kprof command.
#pragma once

#include "sample_script.h"
#include "tool_fixture.h"

#include "model/profile/sample_weights.h"
#include "store/keep_profile.h"

// It took so many seconds. The told may not be used any more.
static inline void keep(struct told *t, int64_t seconds) {
    int64_t id;
    struct store *s = fixture_open();
    assert_true(taken(t));
    t->profile.head.begin_ns = 1763640000000000000;
    t->profile.head.end_ns = t->profile.head.begin_ns + seconds * 1000000000;
    snprintf(t->profile.head.node, sizeof t->profile.head.node, "shop@host");
    snprintf(t->profile.head.settings, sizeof t->profile.head.settings, "{}");
    assert_true(samples_weigh(&t->profile, &(struct sample_choice){.kept = true}));
    assert_true(store_keep_profile(s, &t->profile, &id));
    store_close(s);
    end(t);
}
