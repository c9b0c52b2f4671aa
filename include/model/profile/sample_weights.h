// SPDX-License-Identifier: Apache-2.0
// The weights of a profile of samples: by a metric and a group, of all of it or of a stretch. One
// thread at a time.
#pragma once

#include "model/profile/flame.h"
#include "model/profile/sample_walk.h"

struct sample_choice {
    enum flame_metric metric; // one of samples
    enum flame_group group;
    uint64_t from_us, until_us; // until 0: to the end
    bool kept; // as it is kept: no metric and no group, all looks, ns are their reductions
    // Is told of each look, unless they are kept: when it was, the number of its weight, and what
    // it is by all metrics, FLAME_SAMPLES first. NULL: nobody is.
    void (*each)(void *user, uint64_t us, uint32_t weight, const int64_t *values);
    void *user;
};

// Makes the weights of a profile anew: ns is what the metric weighs, calls how many looks; and what
// it is grouped by stands where full traces have the process. Unless they are `kept`, there is a
// weight for each look, if it is one of 0, and samples->values have what it is by all metrics,
// FLAME_SAMPLES first. False without memory, or where the records are damaged.
bool samples_weigh(struct profile *p, const struct sample_choice *choice);
// What a value of a look is by a metric; false: the look tells nothing of it.
bool samples_value(const struct sample_walk *w, enum flame_metric metric, int64_t *value);
// Whether a metric is of how much there is of something, whose mean is weighed; else it is of what
// happened since the look before, whose sum is.
bool samples_is_level(enum flame_metric metric);
