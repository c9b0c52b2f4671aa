// SPDX-License-Identifier: Apache-2.0
// Questions about identities that only the shim can answer, and the answers remembered by function
// and arguments. Bounded: LIMIT_ASKS_OPEN questions wait, LIMIT_ASK_CACHE answers are kept. One
// thread at a time.
#pragma once

#include "base/map.h"
#include "model/message/message.h"
#include "model/requests/requests.h"

struct identify {
    // hash of function and arguments -> identity, DIRECTORY_NONE: it names nothing
    struct map cache;
    struct map waiting; // question's id -> index in questions
    struct question *questions;
    uint32_t oldest; // of the ring of questions
    uint32_t next_id;
};

// Returns false without memory.
bool identify_init(struct identify *i);
void identify_free(struct identify *i);
// Forgets answers and questions: the identity function is another one.
void identify_reset(struct identify *i);

// Marks the identities of the answers it remembers, by directory id.
void identify_mark(const struct identify *i, bool *identities);

// A call under `ref` carries arguments. When the answer is known the request is named; else returns
// true, and the question *id should be put to the shim.
bool identify_call(struct identify *i, struct tracker *t, struct request_ref ref,
                   const struct message *call, uint32_t *id);
// The answer to a question: a directory id, or DIRECTORY_NONE. Unknown ids are ignored.
void identify_answer(struct identify *i, struct tracker *t, uint32_t id, uint16_t identity);
