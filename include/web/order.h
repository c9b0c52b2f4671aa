// SPDX-License-Identifier: Apache-2.0
// What somebody wants done over HTTP, checked; and the way its answer goes back.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/limits.h"

enum {
    ORDER_NAME_BYTES = 2 * LIMIT_NAME_BYTES,
    ORDER_TEXT_BYTES = LIMIT_NOTE_BYTES + 1,
    ORDER_BY_BYTES = 20, // of a word among others
    ORDER_WHY_BYTES = 200
};

enum order_kind {
    ORDER_PAUSE,
    ORDER_RESUME,
    ORDER_SAMPLE,
    ORDER_NOTE,
    ORDER_FLAME,
    ORDER_FLAME_STOP,
    ORDER_STACKS, // a run of stack sampling
    ORDER_STACKS_STOP,
    ORDER_TOP,      // a look at what a node does now
    ORDER_TRIGGERS, // which triggers a node has: everybody may ask that, by GET
    ORDER_TRIGGER_ADD,
    ORDER_TRIGGER_REMOVE
};

struct order {
    enum order_kind kind;
    char node[ORDER_NAME_BYTES];     // of a note, "": of all of them
    int64_t one_in, per_second;      // of ORDER_SAMPLE: one of the two is 0
    char text[ORDER_TEXT_BYTES];     // of ORDER_NOTE
    int64_t at_s;                    // likewise: when it was, seconds since 1970 UTC; 0: now
    int64_t requests;                // of ORDER_FLAME
    int64_t seconds;                 // likewise, of ORDER_STACKS, and of ORDER_TRIGGER_ADD (0: as
                                     // usual)
    char identity[ORDER_NAME_BYTES]; // of ORDER_FLAME: of this identity alone; "": of any
    int64_t id;                      // of ORDER_FLAME_STOP and ORDER_STACKS_STOP
    char by[ORDER_BY_BYTES];         // of ORDER_STACKS and ORDER_TOP; "": as usual
    // of ORDER_STACKS; 0 and "": as usual, and any process
    int64_t hz, top, every_ms, budget_ppm;
    char application[ORDER_NAME_BYTES], registered[ORDER_NAME_BYTES], pid[ORDER_NAME_BYTES];
    // of ORDER_TRIGGER_ADD, beside hz, seconds and every_ms; "" and -1: as usual
    char trigger[ORDER_BY_BYTES], tier[ORDER_NAME_BYTES], label[ORDER_NAME_BYTES];
    int64_t above, above_us, for_ms; // of a tier's time above_us
    bool high_water;
    char name[ORDER_NAME_BYTES]; // likewise, and of ORDER_TRIGGER_REMOVE
};

struct web_order; // that waits for its answer

// Answers an order, once: on the server's thread, before web_stop. body: JSON, whose memory is
// taken. Who asked may be gone.
void web_order_answer(struct web_order *order, int status, struct buffer *body);
// The same with an error.
void web_order_refuse(struct web_order *order, int status, const char *why);
