// SPDX-License-Identifier: Apache-2.0
// Something that goes on at a node and was asked of the collector, a full trace or a run of stack
// sampling: asked for, followed until it is over, stopped by Ctrl-C. One thread.
#pragma once

#include "codec/control.h"
#include "tool/reach.h"

enum { FOLLOW_TEXT_BYTES = 400 };

// Who hears of it.
struct follow_ear {
    void *user;
    // A message; -1: it goes on, else its exit status, and why has been told.
    int (*hear)(void *user, struct slice type, struct control_map message);
    // Some ten times a second, or NULL. True: it is to stop.
    bool (*turn)(void *user);
};

struct follow {
    const char *command;
    // Writes the question, of this node, as it is called in full.
    void (*ask)(const void *options, const char *node, struct buffer *question);
    const void *options;
    const char *stop; // the message that has it end early; what there is is kept
    struct follow_ear ear;
};

// Connects, asks and follows. node: its name, or a part of it. An exit status; what is wrong with
// the way has been told. reach is closed then.
int follow(const struct follow *f, struct reach *reach, const char *node);

// Writes a list of maps of one text each.
void follow_put_texts(struct control_writer *w, const char *list, const char *key,
                      const char *const *texts, uint32_t count);
// Of a message: a number, 0 where there is none; a text, cleaned, "" where there is none.
int64_t follow_number(struct control_map m, const char *key);
char *follow_text(struct control_map m, const char *key, char out[FOLLOW_TEXT_BYTES]);
