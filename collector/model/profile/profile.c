// SPDX-License-Identifier: Apache-2.0
#include "model/profile/profile.h"

#include "model/profile/samples.h"

bool profile_init(struct profile *p) {
    *p = (struct profile){0};
    if (stacks_init(&p->stacks) && weights_init(&p->weights) && map_init(&p->applications)) {
        return true;
    }
    profile_free(p);
    return false;
}

void profile_free(struct profile *p) {
    stacks_free(&p->stacks);
    weights_free(&p->weights);
    map_free(&p->applications);
    timeline_free(&p->timeline);
    samples_free(p->samples);
    *p = (struct profile){0};
}

void profile_module(struct profile *p, struct slice module, struct slice application) {
    uint32_t name = names_intern(&p->stacks.names, module);
    uint32_t of = names_intern(&p->stacks.names, application);
    if (name != NAME_NONE && of != NAME_NONE) {
        map_set(&p->applications, name, of);
    }
}

const char *profile_application(const struct profile *p, uint32_t module) {
    uint32_t of = module == NAME_NONE ? MAP_NONE : map_get(&p->applications, module);
    return of == MAP_NONE ? "" : names_text(&p->stacks.names, of);
}

struct weight *profile_add(struct profile *p, uint64_t key, uint64_t calls, int64_t ns) {
    uint32_t stack = profile_key_stack(key);
    struct weight *w = profile_key_process(key) == PROFILE_NOBODY
                           ? NULL
                           : weights_of_process(&p->weights, key, &p->of_processes);
    while (!w) {
        w = weights_at(&p->weights, profile_key(stack, profile_key_identity(key), PROFILE_NOBODY),
                       LIMIT_PROFILE_WEIGHTS + p->of_processes);
        p->stacks.full = p->stacks.full || !w;
        if (!w && stack == STACK_ROOT) {
            return NULL;
        }
        stack = p->stacks.all[stack].parent;
    }
    w->calls += calls;
    w->ns += ns;
    return w;
}
