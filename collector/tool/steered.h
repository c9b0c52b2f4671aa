// SPDX-License-Identifier: Apache-2.0
// What a node answers to an order, as kprof trace and kprof trigger tell it.
#pragma once

#include <stdbool.h>

#include "codec/control.h"
#include "codec/json.h"

enum { STEERED_TEXT_BYTES = 512 };

struct steered {
    bool ok;                       // it was done
    char text[STEERED_TEXT_BYTES]; // what was, or why not; clean
};

// Reads it from the message `steered`.
struct steered steered_read(struct control_map answer);
// One line: on stdout when it was done, else on stderr. An exit status.
int steered_tell(const char *command, const char *node, const struct steered *s);
// The members that the commands' JSON objects begin with: node, command (the order), ok, text.
void steered_json(struct json *j, const char *node, const char *order, const struct steered *s);
