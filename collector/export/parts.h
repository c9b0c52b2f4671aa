// SPDX-License-Identifier: Apache-2.0
// Sends items, and finds those that are refused: what is refused is sent again in halves, until it
// is one item. Where one is refused others may be taken: then it is set aside. Where none is taken
// it is not about the items.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/answer.h"

enum sent {
    SENT_ALL,     // but for the items that were set aside
    SENT_MISSING, // where they go is not there any more: set up again
    SENT_LATER    // nothing is certain: all of it again, later
};

// Where so many items are refused and none is taken, it is not the items.
enum { PARTS_SUSPECTS = 16 };

struct parts {
    // Sends the items from `from` until before `until`, at least one. Every meaning but ANSWER_DONE
    // is in why.
    enum answer_meaning (*insert)(void *context, uint32_t from, uint32_t until);
    // An item is set aside.
    void (*refuse)(void *context, uint32_t item, const char *reason);
    void *context;
    const char *why; // CHANGE_REASON_BYTES, that insert writes

    // of this file
    bool taken;                        // some were
    uint32_t suspects[PARTS_SUSPECTS]; // refused alone, while none was taken
    uint32_t suspect_count;
    char reason[CHANGE_REASON_BYTES]; // of the suspects, the first one's
    uint32_t done; // the items before this one are taken or set aside, for certain
};

// Sends the items 0 … count - 1, in order. When it is not SENT_ALL, why says why: where all were
// refused, what it said of the last one.
enum sent parts_send(struct parts *p, uint32_t count);
