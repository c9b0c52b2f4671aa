// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/screen.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text_time.h"
#include "tool/reach.h"
#include "tool/redraw.h"
#include "tool/terminal.h"
#include "tool/text.h"

enum { OUTPUT_BYTES = 4 << 20, CONNECT_MS = 1000 };

static const int64_t RETRY_NS = 2000000000;

struct screen screen_make(const struct client_options *to, bool json) {
    struct screen s = {.to = *to, .json = json, .shown = buffer_make(OUTPUT_BYTES)};
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
    struct control_writer w = control_begin(&b, CONTROL_WATCH, 1);
    control_text(&w, FIELD_NODE, slice_text(node));
    bool sent = control_end(&w) && client_send(s->client, &b);
    buffer_free(&b);
    return sent;
}

// The collector may not be there for a while: once it has been, the shim tells, not we.
static void connect_and_watch(struct screen *s, const char *node, int64_t now_ns) {
    struct client_error e;
    char at[REACH_AT_BYTES];
    if (s->tried_ns != 0 && now_ns - s->tried_ns < RETRY_NS) {
        return;
    }
    s->tried_ns = now_ns;
    s->client = client_open(&s->to, &e);
    if (!s->client && !s->heard) {
        snprintf(s->why, sizeof s->why, "cannot reach the collector at %s from here: %s",
                 reach_at(&s->to, at), e.text);
    } else if (s->client && !watch(s, node)) {
        disconnect(s);
    }
}

// It may be another collector than the node's: the same address means another one there. Right
// after the start, and when it has been started anew, the node's own one may not know the node for
// a moment.
static void unknown(struct screen *s) {
    char at[REACH_AT_BYTES];
    if (!s->heard && ++s->unknown > 1) {
        snprintf(s->why, sizeof s->why,
                 "the collector at %s, as seen from here, does not know the node: it reports to "
                 "another one",
                 reach_at(&s->to, at));
    }
    disconnect(s);
}

static void put(struct screen *s, const struct buffer *out) {
    errno = 0;
    if (!out->failed && out->len > 0) {
        fwrite(out->data, 1, out->len, stdout);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        s->broken = errno != 0 ? errno : EIO;
        clearerr(stdout); // the caller tells
    }
}

void screen_hide(struct screen *s) {
    struct buffer out = buffer_make(OUTPUT_BYTES);
    redraw_hide(&s->shown, &out);
    put(s, &out);
    buffer_free(&out);
}

void screen_show(struct screen *s) {
    if (s->json || !s->to.host) {
        return;
    }
    struct view_style style = {
        .width = terminal_width(), .height = terminal_height() - 1, .colour = terminal_colour()};
    struct buffer out = buffer_make(OUTPUT_BYTES);
    redraw_hide(&s->shown, &out);
    view_table(&s->view, &style, &s->shown);
    if (s->shown.failed) {
        buffer_reset(&s->shown);
    }
    s->width = style.width;
    s->height = style.height;
    if (s->shown.len > 0) {
        buffer_append(&out, s->shown.data, s->shown.len);
    }
    put(s, &out);
    buffer_free(&out);
}

static void show(struct screen *s, struct control_map rows) {
    char at[TEXT_TIME_BYTES];
    if (s->json) {
        struct buffer out = buffer_make(OUTPUT_BYTES);
        view_json(rows, text_time_format(clock_wall(), true, at), &out);
        put(s, &out);
        buffer_free(&out);
    } else if (view_take(&s->view, rows)) {
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
        control_get_text(control_root(message), FIELD_TYPE, &type);
        bool rows = slice_is(type, CONTROL_ROWS), error = slice_is(type, CONTROL_ERROR);
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
        view_silent(&s->view);
        screen_show(s);
    }
}

// Draws anew in a terminal that has another size, once that has stayed for a turn: who draws at a
// window's edge changes it many times.
static void follow_size(struct screen *s) {
    uint32_t width = terminal_width(), height = terminal_height() - 1;
    bool other = s->shown.len > 0 && (width != s->width || height != s->height);
    if (other && width == s->seen_width && height == s->seen_height) {
        screen_show(s);
    }
    s->seen_width = width;
    s->seen_height = height;
}

const char *screen_turn(struct screen *s, const char *node, int64_t now_ns) {
    if (s->to.host && !s->client) {
        connect_and_watch(s, node, now_ns);
    }
    read_rows(s);
    follow_size(s);
    if (s->told || !*s->why) {
        return NULL;
    }
    s->told = true;
    return s->why;
}

void screen_close(struct screen *s) {
    if (s->shown.len > 0) {
        fputs("\r\x1b[K", stdout); // the terminal has shown ^C there
        fflush(stdout);
    }
    disconnect(s);
    view_free(&s->view);
    buffer_free(&s->shown);
    *s = (struct screen){0};
}
