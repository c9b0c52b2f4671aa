#include "tool/attach_screen.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text_time.h"
#include "tool/terminal.h"

enum { OUTPUT_BYTES = 4 << 20, CONNECT_MS = 1000 };

static const int64_t RETRY_NS = 2000000000;

struct screen screen_make(const struct client_options *to, bool json) {
    struct screen s = {.to = *to, .json = json};
    s.to.timeout_ms = CONNECT_MS;
    if (!json && !terminal_draws()) {
        s.to.host = NULL;
    }
    return s;
}

static void disconnect(struct screen *s) {
    client_close(s->client);
    s->client = NULL;
}

static bool watch(struct screen *s, const char *node) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "watch", 1);
    control_text(&w, "node", slice_text(node));
    bool sent = control_end(&w) && client_send(s->client, &b);
    buffer_free(&b);
    return sent;
}

// The collector may not be there for a while: once it has been, the shim tells, not we.
static void connect_and_watch(struct screen *s, const char *node, int64_t now_ns) {
    char why[CLIENT_WHY_BYTES];
    if (s->tried_ns != 0 && now_ns - s->tried_ns < RETRY_NS) {
        return;
    }
    s->tried_ns = now_ns;
    s->client = client_open(&s->to, why);
    if (!s->client && !s->heard) {
        snprintf(s->why, sizeof s->why, "cannot reach the collector at %s:%u from here: %s", s->to.host, s->to.port, why);
    } else if (s->client && !watch(s, node)) {
        disconnect(s);
    }
}

// It may be another collector than the node's: the same address means another one there. Right after the start, and when it has been
// started anew, the node's own one may not know the node for a moment.
static void unknown(struct screen *s) {
    if (!s->heard && ++s->unknown > 1) {
        snprintf(s->why, sizeof s->why, "the collector at %s:%u, as seen from here, does not know the node: it reports to another one",
                 s->to.host, s->to.port);
    }
    disconnect(s);
}

static void put(struct buffer *out) {
    if (!out->failed && out->len > 0) {
        fwrite(out->data, 1, out->len, stdout);
    }
    fflush(stdout);
    buffer_free(out);
}

void screen_hide(struct screen *s) {
    if (s->drawn > 0 && (terminal_width() < s->across || terminal_height() <= s->drawn)) {
        fputs("\x1b[H\x1b[J", stdout); // its lines may have been wrapped or moved: nobody knows where they are
    } else if (s->drawn > 0) {
        printf("\r\x1b[%uA\x1b[J", s->drawn); // up, and everything below is gone
    }
    fflush(stdout);
    s->drawn = 0;
}

void screen_show(struct screen *s) {
    if (s->json || !s->to.host) {
        return;
    }
    struct buffer out = buffer_make(OUTPUT_BYTES);
    struct live_style style = {.width = terminal_width(), .height = terminal_height() - 1, .colour = terminal_colour()};
    screen_hide(s);
    live_table(&s->view, &style, &out);
    s->across = style.width;
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
        screen_show(s);
    }
}

// Reads what has come, and shows it.
static void read_rows(struct screen *s) {
    struct control *message;
    enum client_status status = CLIENT_MESSAGE;
    while (s->client && status == CLIENT_MESSAGE) {
        struct slice type = {0};
        status = client_next(s->client, 1, &message);
        if (status != CLIENT_MESSAGE) {
            break;
        }
        control_get_text(control_root(message), "type", &type);
        bool rows = slice_is(type, "rows"), error = slice_is(type, "error");
        if (rows) {
            s->heard = true;
            show(s, control_root(message));
        }
        control_free(message);
        if (error) {
            unknown(s);
        }
    }
    if (s->client && status == CLIENT_CLOSED) {
        disconnect(s);
        live_silent(&s->view);
        screen_show(s);
    }
}

const char *screen_turn(struct screen *s, const char *node, int64_t now_ns) {
    if (s->to.host && !s->client) {
        connect_and_watch(s, node, now_ns);
    }
    read_rows(s);
    if (s->told || !*s->why) {
        return NULL;
    }
    s->told = true;
    return s->why;
}

void screen_close(struct screen *s) {
    if (s->drawn > 0) {
        fputs("\r\x1b[K", stdout); // the terminal has shown ^C there
        fflush(stdout);
    }
    disconnect(s);
    live_view_free(&s->view);
    *s = (struct screen){0};
}
