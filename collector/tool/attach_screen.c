#include "tool/attach_screen.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text_time.h"
#include "tool/terminal.h"

enum { OUTPUT_BYTES = 4 << 20, CONNECT_MS = 1000 };

static const int64_t RETRY_NS = 2000000000;

struct screen screen_make(const struct client_options *to, bool json) {
    struct screen s = {.to = *to, .json = json};
    s.to.timeout_ms = CONNECT_MS;
    if (!json && !isatty(STDOUT_FILENO)) {
        s.to.host = NULL;
    }
    return s;
}

static void disconnect(struct screen *s) {
    client_close(s->client);
    s->client = NULL;
}

// The collector may not be there for a while: the shim tells, not we.
static void connect_and_watch(struct screen *s, const char *node, int64_t now_ns) {
    if (s->tried_ns != 0 && now_ns - s->tried_ns < RETRY_NS) {
        return;
    }
    s->tried_ns = now_ns;
    s->client = client_open(&s->to, s->why);
    if (s->client) {
        s->why[0] = 0;
        struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
        struct control_writer w = control_begin(&b, "watch", 1);
        control_text(&w, "node", slice_text(node));
        if (!control_end(&w) || !client_send(s->client, &b)) {
            disconnect(s);
        }
        buffer_free(&b);
    }
}

static void put(struct buffer *out) {
    if (!out->failed && out->len > 0) {
        fwrite(out->data, 1, out->len, stdout);
    }
    fflush(stdout);
    buffer_free(out);
}

void screen_erase(struct screen *s) {
    if (s->drawn > 0) {
        printf("\x1b[%uA\x1b[J", s->drawn); // up, and everything below is gone
        fflush(stdout);
        s->drawn = 0;
    }
}

static void draw(struct screen *s) {
    struct buffer out = buffer_make(OUTPUT_BYTES);
    screen_erase(s);
    live_table(&s->view, terminal_width(), terminal_height() - 1, &out);
    for (size_t i = 0; i < out.len; i++) {
        s->drawn += out.data[i] == '\n';
    }
    put(&out);
}

static void show(struct screen *s, struct control_map rows) {
    char at[TEXT_TIME_BYTES];
    if (s->json) {
        struct buffer out = buffer_make(OUTPUT_BYTES);
        live_json(rows, text_time_format(clock_wall(), true, at), &out);
        put(&out);
    } else if (live_take(&s->view, rows)) {
        draw(s);
    }
}

const char *screen_turn(struct screen *s, const char *node, int64_t now_ns) {
    struct control *message;
    enum client_status status = CLIENT_MESSAGE;
    if (s->to.host && !s->client) {
        connect_and_watch(s, node, now_ns);
    }
    while (s->client && status == CLIENT_MESSAGE) {
        status = client_next(s->client, 1, &message);
        if (status == CLIENT_MESSAGE) {
            struct slice type = {0};
            control_get_text(control_root(message), "type", &type);
            if (slice_is(type, "rows")) {
                show(s, control_root(message));
            } else if (slice_is(type, "error")) { // it does not know the node yet
                status = CLIENT_CLOSED;
            }
            control_free(message);
        }
    }
    if (s->client && status == CLIENT_CLOSED) {
        disconnect(s);
    }
    if (s->client || !s->to.host || s->told || !*s->why) {
        return NULL;
    }
    s->told = true;
    return s->why;
}

void screen_close(struct screen *s) {
    disconnect(s);
    live_view_free(&s->view);
    *s = (struct screen){0};
}
