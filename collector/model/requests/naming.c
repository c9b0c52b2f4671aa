// SPDX-License-Identifier: Apache-2.0
// The identities of requests: what names one, and what is asked of its node.
#include <string.h>

#include "tracker.h"

bool tracker_unnamed(const struct tracker *t, struct request_ref ref) {
    ref = piece_ref(t, ref);
    return alive(t, ref.index, ref.generation) &&
           (request_at(t, ref.index)->identity == IDENTITY_UNDEFINED ||
            request_at(t, ref.index)->met);
}

struct request_ref tracker_find(const struct tracker *t, uint64_t token) {
    uint32_t index = map_get(&t->by_token, token);
    return index == MAP_NONE ? NO_REQUEST
                             : (struct request_ref){index, request_at(t, index)->generation};
}

bool tracker_known(const struct tracker *t, uint64_t token, uint16_t *identity, int64_t *end) {
    struct request_ref ref = piece_ref(t, tracker_find(t, token));
    if (!alive(t, ref.index, ref.generation)) {
        return false;
    }
    const struct request *r = request_at(t, ref.index);
    *identity = r->identity;
    *end = r->has_end && r->phase == PHASE_CLOSING ? r->end : INT64_MAX;
    return r->identity != IDENTITY_UNDEFINED;
}

void tracker_name(struct tracker *t, struct request_ref ref, uint16_t identity) {
    ref = piece_ref(t, ref);
    if (tracker_unnamed(t, ref)) {
        request_at(t, ref.index)->identity = identity;
        request_at(t, ref.index)->named_place = 0;
        request_at(t, ref.index)->met = false;
    }
}

void tracker_name_begun(struct tracker *t, struct request_ref ref, struct slice name) {
    if (!alive(t, ref.index, ref.generation) || request_at(t, ref.index)->name != SLAB_NONE) {
        return;
    }
    uint32_t place = POOL_TAKE(t, names);
    if (place == SLAB_NONE) {
        return;
    }
    request_at(t, ref.index)->name = place;
    struct begun_name *begun = SLAB_AT(&t->pool->names, struct begun_name, place);
    begun->len = (uint32_t)(name.len < sizeof begun->text ? name.len : sizeof begun->text);
    memcpy(begun->text, name.data, begun->len);
}

void tracker_name_late(struct tracker *t, struct request_ref ref, uint16_t identity) {
    if (tracker_unnamed(t, ref)) {
        struct request *r = request_at(t, ref.index);
        r->identity = identity;
        r->named_place = r->met ? 0 : UINT8_MAX;
        r->met = false;
    }
}

int tracker_asked(struct tracker *t, struct request_ref ref) {
    ref = piece_ref(t, ref);
    if (!alive(t, ref.index, ref.generation) ||
        request_at(t, ref.index)->asked == LIMIT_ASKS_PER_REQUEST) {
        return -1;
    }
    request_at(t, ref.index)->answers_due++;
    return request_at(t, ref.index)->asked++;
}

void tracker_answered(struct tracker *t, struct request_ref ref, int place, uint16_t identity) {
    ref = piece_ref(t, ref);
    if (!alive(t, ref.index, ref.generation)) {
        return;
    }
    struct request *r = request_at(t, ref.index);
    if (r->answers_due > 0) {
        r->answers_due--;
    }
    if (identity != DIRECTORY_NONE && place < r->named_place) {
        r->identity = identity;
        r->named_place = (uint8_t)place;
    }
}
