// SPDX-License-Identifier: Apache-2.0
#include "tool/question.h"

#include "base/exit_status.h"
#include "base/limits.h"
#include "tool/nodes/nodes.h"

// A node has so long, and then the collector says that it does not answer.
enum { ANSWER_MS = (LIMIT_STEER_SECONDS + 2) * 1000 };

struct client *question_ask(struct question *q, struct reach *reach, int *status) {
    struct client *c = reach_open(q->command, reach, status);
    if (!c) {
        return NULL;
    }
    *status = q->node ? nodes_find(q->command, c, q->node, q->found, &q->node) : EXIT_SUCCESS;
    if (*status == EXIT_SUCCESS) {
        struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
        q->ask(q->options, q->node, &b);
        *status = reach_ask(q->command, c, &b);
    }
    if (*status != EXIT_SUCCESS) {
        client_close(c);
        return NULL;
    }
    return c;
}

int question_put(struct question *q, struct reach *reach, const char *type,
                 int (*show)(const void *options, const char *node, struct control_map answer)) {
    int status;
    struct client *c = question_ask(q, reach, &status);
    if (c) {
        struct control *answer = reach_answer(q->command, c, type, ANSWER_MS);
        status = answer ? show(q->options, q->node, control_root(answer)) : EXIT_FAILURE;
        control_free(answer);
        client_close(c);
    }
    reach_close(reach);
    return status;
}
