// SPDX-License-Identifier: Apache-2.0
// A question of a command to a running collector, mostly about one of its nodes: the way from the
// command line to the answer, and back. Every failure is told on stderr, in one line. One thread.
#pragma once

#include "codec/control.h"
#include "tool/node.h"
#include "tool/reach.h"

struct question {
    const char *command;
    // As much of a node's name as tells it from the others, or NULL: it is about no node. Once it
    // is asked: the whole name, which lives as long as the question.
    const char *node;
    // Writes the message; node: the whole name, or NULL.
    void (*ask)(const void *options, const char *node, struct buffer *message);
    const void *options; // of ask and show
    char found[NODE_TEXT_BYTES];
};

// Connects, finds the node among those that the collector knows, and asks. The answer is still to
// come: reach_answer and its like. NULL with *status set to an exit status, and has told why.
// reach_close in either case, after client_close.
struct client *question_ask(struct question *q, struct reach *reach, int *status);

// Asks, waits for the answer, a message of this type, has it shown, and closes all; also reach.
// Waits for as long as a node may take that is to do something. show: returns an exit status, and
// has told what is wrong. Returns an exit status.
int question_put(struct question *q, struct reach *reach, const char *type,
                 int (*show)(const void *options, const char *node, struct control_map answer));
