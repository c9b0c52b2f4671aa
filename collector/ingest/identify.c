// SPDX-License-Identifier: Apache-2.0
#include "ingest/identify.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/limits.h"
#include "model/directory/directory.h"

struct question {
    uint64_t key;
    struct request_ref ref;
    uint32_t id;
    int place;
};

bool identify_init(struct identify *i) {
    *i = (struct identify){.questions = calloc(LIMIT_ASKS_OPEN, sizeof(struct question))};
    if (!i->questions) {
        goto err0;
    }
    if (!map_init(&i->cache)) {
        goto err1;
    }
    if (!map_init(&i->waiting)) {
        goto err2;
    }
    return true;
err2:
    map_free(&i->cache);
err1:
    free(i->questions);
err0:
    return false;
}

void identify_free(struct identify *i) {
    map_free(&i->cache);
    map_free(&i->waiting);
    free(i->questions);
}

void identify_reset(struct identify *i) {
    map_clear(&i->cache);
    map_clear(&i->waiting);
}

void identify_mark(const struct identify *i, bool *identities) {
    for (uint32_t slot = 0; slot <= i->cache.mask; slot++) {
        uint32_t identity = i->cache.slots[slot].value;
        if (identity != MAP_NONE && identity != DIRECTORY_NONE) {
            identities[identity] = true;
        }
    }
}

static uint64_t key_of(const struct message *call) {
    uint64_t key = hash_bytes(call->module.text);
    key = hash_mix(key + call->arity) ^ hash_bytes(call->function.text);
    return hash_mix(key) ^ hash_bytes(call->note);
}

bool identify_call(struct identify *i, struct tracker *t, struct request_ref ref,
                   const struct message *call, uint32_t *id) {
    if (!tracker_unnamed(t, ref)) {
        return false;
    }
    uint64_t key = key_of(call);
    uint32_t known = map_get(&i->cache, key);
    if (known == DIRECTORY_NONE || (known == MAP_NONE && call->note.len > LIMIT_ASK_BYTES)) {
        return false;
    }
    int place = tracker_asked(t, ref);
    if (place < 0) {
        return false;
    }
    if (known != MAP_NONE) {
        tracker_answered(t, ref, place, (uint16_t)known);
        return false;
    }
    // The ring's oldest question makes room: its request goes on without the answer.
    struct question *q = &i->questions[i->oldest];
    if (map_get(&i->waiting, q->id) == i->oldest) {
        tracker_answered(t, q->ref, q->place, DIRECTORY_NONE);
        map_remove(&i->waiting, q->id, i->oldest);
    }
    *q = (struct question){key, ref, i->next_id++, place};
    if (!map_set(&i->waiting, q->id, i->oldest)) {
        tracker_answered(t, ref, place, DIRECTORY_NONE);
        return false;
    }
    i->oldest = (i->oldest + 1) % LIMIT_ASKS_OPEN;
    *id = q->id;
    return true;
}

void identify_answer(struct identify *i, struct tracker *t, uint32_t id, uint16_t identity) {
    uint32_t index = map_get(&i->waiting, id);
    if (index == MAP_NONE) {
        return;
    }
    const struct question *q = &i->questions[index];
    map_remove(&i->waiting, id, index);
    tracker_answered(t, q->ref, q->place, identity);
    if (i->cache.count >= LIMIT_ASK_CACHE) {
        map_clear(&i->cache);
    }
    map_set(&i->cache, q->key, identity);
}
