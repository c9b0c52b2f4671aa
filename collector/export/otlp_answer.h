// SPDX-License-Identifier: Apache-2.0
// What a receiver's answer means. Whatever stands at its address may answer anything. Pure.
#pragma once

#include "export/answer.h"

// What a receiver says of what it has taken.
struct otlp_partial {
    uint64_t rejected;                 // spans or data points that it has not
    char message[CHANGE_REASON_BYTES]; // one clean line; "": none
};

// ANSWER_DONE: it has taken what partial does not tell of. ANSWER_REFUSED: it does not take this,
// and may take other or less. reason, CHANGE_REASON_BYTES: one clean line, "" after ANSWER_DONE.
enum answer_meaning otlp_answer(const struct answer *a, struct otlp_partial *partial, char *reason);
