// SPDX-License-Identifier: Apache-2.0
// Processes that were forgotten, as there were so many: what they sent before may still come, and
// would go by its label like that of any stranger.
#include "causes.h"

#include "base/hash.h"
#include "base/time_math.h"

static uint64_t forgotten_key(const struct tracker *t, uint64_t pid) {
    return hash_mix(pid ^ t->salt) | 1; // never 0
}

static struct forgotten *forgotten_set(const struct tracker *t, uint64_t key) {
    return &t->pool->forgotten[(key >> 32) % (LIMIT_FORGOTTEN_PROCESSES / FORGOTTEN_WAYS) *
                               FORGOTTEN_WAYS];
}

// Node time in units of a millisecond or so, of which differences are taken.
static uint32_t coarse(int64_t time) {
    return (uint32_t)((uint64_t)time >> FORGOTTEN_SHIFT);
}

void remember_forgotten(struct tracker *t, const struct process *p) {
    uint64_t key = forgotten_key(t, p->pid);
    struct forgotten *set = forgotten_set(t, key);
    int place = 0;
    while (place < FORGOTTEN_WAYS - 1 && set[place].key != key) {
        place++;
    }
    if (set[place].key != key && episode_find(t, set[place].episode)) {
        t->pool->overlooked = t->pool->episode_count;
    }
    for (; place > 0; place--) {
        set[place] = set[place - 1];
    }
    set[0] = (struct forgotten){key, p->episode, coarse(p->last)};
    t->forgets = true;
}

// That of a process that was forgotten within the grace time before, or NULL.
static const struct forgotten *forgotten_lately(const struct tracker *t, uint64_t pid,
                                                int64_t time) {
    const int32_t grace = GRACE_NS >> FORGOTTEN_SHIFT;
    uint64_t key = forgotten_key(t, pid);
    const struct forgotten *set = forgotten_set(t, key);
    for (int i = 0; i < FORGOTTEN_WAYS; i++) {
        if (set[i].key == key) {
            int32_t since = (int32_t)(coarse(time) - set[i].at);
            return since >= -grace && since <= grace ? &set[i] : NULL;
        }
    }
    return NULL;
}

// Whether what a process was at within the grace time before had to make room; or, where nothing is
// known of it, that it was forgotten.
static bool overwritten(const struct tracker *t, const struct process *p, const struct forgotten *f,
                        int64_t time) {
    if (!p && !f) {
        return episode_find(t, t->pool->overlooked);
    }
    uint32_t latest = p ? p->episode : f->episode;
    return latest != 0 && !episode_find(t, latest) && (!p || p->last >= time_sub(time, GRACE_NS));
}

void forgotten_doubt(struct tracker *t, uint32_t index, uint64_t from, int64_t time) {
    const struct process *p = process_find(t, from);
    const struct forgotten *f = p ? NULL : forgotten_lately(t, from, time);
    const struct episode *e = f ? episode_find(t, f->episode) : NULL;
    uint32_t last = e ? work_settled(t, e->request, e->generation) : SLAB_NONE;
    bool doubtful = (last != SLAB_NONE && last != index) || overwritten(t, p, f, time);
    if (doubtful && !worked_for(t, index, from, 0)) {
        requests_doubt_perhaps(t, index, last);
    }
}
