// SPDX-License-Identifier: Apache-2.0
#include "app/stack_run_state.h"
#include "base/slab.h"

void stack_run_measure(struct stack_runs *runs, struct stack_run *r) {
    const struct samples *s = r->profile.samples;
    runs->bytes -= r->bytes;
    r->bytes = (r->taker ? sample_taker_bytes(r->taker) : 0) +
               (r->view ? sample_view_bytes(r->view) : 0) +
               (s ? samples_bytes(s) + stacks_bytes(&r->profile.stacks) : 0);
    runs->bytes += r->bytes;
}

bool stack_run_has_room(const struct stack_runs *runs, const struct stack_run *r,
                        uint32_t eighths) {
    size_t most = (size_t)runs->mb * 1000000, taken = r->bytes / eighths * 8;
    size_t left = most > runs->bytes ? most - runs->bytes : 0;
    return taken <= LIMIT_SURE_RUN_BYTES || taken <= SLAB_SHARE * left;
}

bool stack_runs_provide(struct stack_runs *runs) {
    enum { STEP = LIMIT_MB_SAMPLES_STEP, MOST = LIMIT_RUNS_BYTES / 1000000 };
    enum { WRITTEN = LIMIT_MB_SAMPLES - MOST };
    uint32_t mb = runs->first ? STEP : 0;
    while (mb > 0 && mb < MOST && (size_t)mb * 1000000 / 2 < runs->bytes) {
        mb += STEP;
    }
    if (mb != runs->mb && pipeline_spare(runs->pipeline, SPARED_SAMPLES, mb ? mb + WRITTEN : 0)) {
        runs->mb = mb;
    }
    return runs->mb > 0 || !runs->first;
}
