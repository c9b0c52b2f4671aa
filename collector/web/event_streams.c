// SPDX-License-Identifier: Apache-2.0
#include "web/event_streams.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "web/reply.h"

enum {
    ELSEWHERE_S = 10, // between two looks at what is not in a file here
    PULSE_S = 10,     // a comment that keeps proxies and browsers from closing the stream
    BEHIND = 16 << 10 // bytes that a stream may lag behind; it is told nothing until they are gone
};

struct stream {
    struct event_streams *all;
    struct stream *next, **at;
    struct evhttp_request *req;
    struct evhttp_connection *connection;
};

// What tells that something was written.
struct written {
    struct timespec file, log;
    int64_t file_bytes, log_bytes;
};

struct event_streams {
    struct event *timer;
    const char *db;
    char log[PATH_MAX];
    struct stream *streams;
    struct written written;
    int64_t pulse_s; // when all were told something last
};

static void on_gone(struct evhttp_connection *connection, void *context) {
    (void)connection;
    struct stream *s = context;
    reply_abandon(s->req);
    *s->at = s->next;
    if (s->next) {
        s->next->at = s->at;
    }
    free(s);
}

static bool lags(const struct stream *s) {
    struct bufferevent *bev = evhttp_connection_get_bufferevent(s->connection);
    return evbuffer_get_length(bufferevent_get_output(bev)) > BEHIND;
}

static void tell(struct event_streams *all, const char *text) {
    struct evbuffer *chunk = evbuffer_new();
    for (struct stream *s = all->streams, *next; chunk && s; s = next) {
        next = s->next; // telling it may find that it is gone
        if (!lags(s) && evbuffer_add_printf(chunk, "%s", text) > 0) {
            evhttp_send_reply_chunk(s->req, chunk);
        }
    }
    if (chunk) {
        evbuffer_free(chunk);
    }
}

static struct written look(const struct event_streams *all) {
    struct written w = {0};
    struct stat st;
    if (!all->db) { // elsewhere: nobody tells when something is written
        w.file.tv_sec = clock_monotonic() / 1000000000 / ELSEWHERE_S;
        return w;
    }
    if (stat(all->db, &st) == 0) {
        w.file = st.st_mtim;
        w.file_bytes = st.st_size;
    }
    if (stat(all->log, &st) == 0) {
        w.log = st.st_mtim;
        w.log_bytes = st.st_size;
    }
    return w;
}

static bool same_time(struct timespec a, struct timespec b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same(const struct written *a, const struct written *b) {
    return same_time(a->file, b->file) && same_time(a->log, b->log) &&
           a->file_bytes == b->file_bytes && a->log_bytes == b->log_bytes;
}

static void on_second(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    struct event_streams *all = context;
    int64_t now_s = clock_monotonic() / 1000000000;
    if (!all->streams) {
        return;
    }
    struct written now = look(all);
    if (!same(&now, &all->written)) {
        char text[64];
        snprintf(text, sizeof text, "event: written\ndata: {\"at_s\":%lld}\n\n",
                 (long long)(clock_wall() / 1000000000));
        all->written = now;
        all->pulse_s = now_s;
        tell(all, text);
    } else if (now_s - all->pulse_s >= PULSE_S) {
        all->pulse_s = now_s;
        tell(all, ": still here\n\n");
    }
}

struct event_streams *event_streams_start(struct event_base *base, const char *db) {
    static const struct timeval second = {1, 0};
    struct event_streams *all = calloc(1, sizeof *all);
    if (!all) {
        return NULL;
    }
    all->db = db;
    snprintf(all->log, sizeof all->log, "%s-wal", db ? db : "");
    all->written = look(all);
    all->timer = event_new(base, -1, EV_PERSIST, on_second, all);
    if (!all->timer || event_add(all->timer, &second) != 0) {
        event_streams_stop(all);
        return NULL;
    }
    return all;
}

void event_streams_open(struct event_streams *all, struct evhttp_request *req) {
    struct stream *s = calloc(1, sizeof *s);
    struct evbuffer *chunk = evbuffer_new();
    if (!s || !chunk) {
        free(s);
        if (chunk) {
            evbuffer_free(chunk);
        }
        reply_error(req, 500, "no memory");
        return;
    }
    *s = (struct stream){.all = all,
                         .next = all->streams,
                         .at = &all->streams,
                         .req = req,
                         .connection = evhttp_request_get_connection(req)};
    if (s->next) {
        s->next->at = &s->next;
    }
    all->streams = s;
    reply_headers(req);
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    evhttp_add_header(headers, "Content-Type", "text/event-stream");
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_connection_set_closecb(s->connection, on_gone, s);
    evhttp_send_reply_start(req, 200, NULL);
    evbuffer_add_printf(chunk, "retry: 3000\n\n");
    evhttp_send_reply_chunk(req, chunk);
    evbuffer_free(chunk);
}

void event_streams_stop(struct event_streams *all) {
    if (!all) {
        return;
    }
    for (struct stream *s = all->streams, *next; s; s = next) {
        next = s->next;
        evhttp_connection_set_closecb(s->connection, NULL, NULL);
        free(s);
    }
    if (all->timer) {
        event_free(all->timer);
    }
    free(all);
}
