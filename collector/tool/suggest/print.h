// SPDX-License-Identifier: Apache-2.0
// What kprof suggest prints. One thread.
#pragma once

#include "base/buffer.h"
#include "dist/shim.h"

struct suggest_about {
    const char *node;        // as it calls itself
    const char *cookie_file; // NULL: the usual one
};

// Comments that tell the reasons, and the command below them: a shell can read all of it. What the
// node says is quoted, and cannot steer a terminal.
void suggest_print_text(struct buffer *out, const struct shim_suggestions *s,
                        const struct suggest_about *about);
// What the node could not look at, a line each.
void suggest_print_notes(struct buffer *out, const struct shim_suggestions *s);
// One object: node, command, options, notes, config.
void suggest_print_json(struct buffer *out, const struct shim_suggestions *s,
                        const struct suggest_about *about);
