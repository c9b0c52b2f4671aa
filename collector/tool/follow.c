// SPDX-License-Identifier: Apache-2.0
#include "tool/follow.h"

#include "base/exit_status.h"
#include "tool/command.h"
#include "tool/question.h"
#include "tool/stop.h"
#include "tool/text.h"

enum { LOOK_MS = 100, SILENT_MS = 15000 };

// -- messages -------------------------------------------------------------------------------------

void follow_put_texts(struct control_writer *w, const char *list, const char *key,
                      const char *const *texts, uint32_t count) {
    control_list(w, list, count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(w, 1);
        control_text(w, key, slice_text(texts[i]));
    }
}

int64_t follow_number(struct control_map m, const char *key) {
    int64_t n = 0;
    control_get_int(m, key, &n);
    return n;
}

char *follow_text(struct control_map m, const char *key, char out[FOLLOW_TEXT_BYTES]) {
    text_take(m, key, out, FOLLOW_TEXT_BYTES);
    return out;
}

// -- following ------------------------------------------------------------------------------------

static void ask_to_stop(const struct follow *f, struct client *c) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, f->stop, 0);
    if (control_end(&w)) {
        client_send(c, &b);
    }
    buffer_free(&b);
}

// -1: it goes on.
static int hear(const struct follow *f, struct control_map m) {
    struct slice type = slice_text("");
    char text[FOLLOW_TEXT_BYTES];
    control_get_text(m, FIELD_TYPE, &type);
    if (slice_is(type, CONTROL_ERROR)) {
        follow_text(m, FIELD_TEXT, text);
        return command_fail(f->command, EXIT_FAILURE, "%s", text[0] ? text : "it gives no reason");
    }
    return f->ear.hear(f->ear.user, type, m);
}

static int until_it_ends(const struct follow *f, struct client *c) {
    bool stopping = false;
    for (int silent = 0; silent <= SILENT_MS;) {
        struct control *message;
        bool stop = f->ear.turn && f->ear.turn(f->ear.user);
        if (!stopping && (stop || stop_wanted())) {
            stopping = true;
            ask_to_stop(f, c);
        }
        enum client_status got = client_next(c, LOOK_MS, &message);
        if (got == CLIENT_CLOSED) {
            return command_fail(f->command, EXIT_FAILURE, "the collector is gone: %s",
                                client_why(c));
        }
        if (got == CLIENT_TIMEOUT) {
            silent += LOOK_MS;
            continue;
        }
        silent = 0;
        int status = hear(f, control_root(message));
        control_free(message);
        if (status >= 0) {
            return status;
        }
    }
    return command_fail(f->command, EXIT_FAILURE, "the collector does not answer");
}

int follow(const struct follow *f, struct reach *reach, const char *node) {
    struct question q = {.command = f->command, .node = node, .ask = f->ask, .options = f->options};
    int status;
    struct client *c = question_ask(&q, reach, &status);
    if (c) {
        status = until_it_ends(f, c);
        client_close(c);
    }
    reach_close(reach);
    return status;
}
