// SPDX-License-Identifier: Apache-2.0
#include "web/patience.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/limits.h"

// Of a connection, by its descriptor. Nobody tells when it ends: what stands here may be of one
// that is gone, and the descriptor something else's. The socket's number says so.
struct asking {
    ino_t socket;
    int64_t since_s; // when its question began, monotonic; 0: it says nothing
};

struct patience {
    struct event *settle;
    struct bufferevent **fresh; // that have no descriptor yet
    uint32_t fresh_count, fresh_room;
    struct asking **all; // by descriptor; NULL: none had it yet
    uint32_t count, room;
};

static int64_t now_s(void) {
    return clock_monotonic() / 1000000000;
}

static struct asking *asking_of(const struct patience *p, evutil_socket_t fd) {
    return fd >= 0 && (uint32_t)fd < p->count ? p->all[fd] : NULL;
}

// The same, made where there is none; NULL without memory.
static struct asking *asking_made(struct patience *p, evutil_socket_t fd) {
    while (fd >= 0 && p->count <= (uint32_t)fd) {
        if (!array_grow((void **)&p->all, &p->room, p->count, sizeof(struct asking *))) {
            return NULL;
        }
        p->all[p->count++] = NULL;
    }
    if (fd >= 0 && !p->all[fd]) {
        p->all[fd] = calloc(1, sizeof(struct asking));
    }
    return asking_of(p, fd);
}

static void on_bytes(struct evbuffer *input, const struct evbuffer_cb_info *info, void *context) {
    (void)input;
    struct asking *a = context;
    if (info->n_added > 0 && a->since_s == 0) {
        a->since_s = now_s();
    }
}

static void begin(struct patience *p, struct bufferevent *bev) {
    struct stat st;
    evutil_socket_t fd = bufferevent_getfd(bev);
    struct asking *a = asking_made(p, fd);
    if (a && fstat(fd, &st) == 0 && evbuffer_add_cb(bufferevent_get_input(bev), on_bytes, a)) {
        *a = (struct asking){.socket = st.st_ino, .since_s = now_s()};
    }
}

// The connections that came have their descriptors now.
static void on_settle(evutil_socket_t none, short what, void *context) {
    (void)none;
    (void)what;
    struct patience *p = context;
    for (uint32_t i = 0; i < p->fresh_count; i++) {
        begin(p, p->fresh[i]);
        bufferevent_decref(p->fresh[i]);
    }
    p->fresh_count = 0;
}

struct patience *patience_new(struct event_base *base) {
    struct patience *p = calloc(1, sizeof *p);
    if (p && !(p->settle = event_new(base, -1, 0, on_settle, p))) {
        free(p);
        return NULL;
    }
    return p;
}

void patience_begin(struct patience *p, struct bufferevent *bev) {
    if (array_grow((void **)&p->fresh, &p->fresh_room, p->fresh_count,
                   sizeof(struct bufferevent *))) {
        bufferevent_incref(bev);
        p->fresh[p->fresh_count++] = bev;
        event_active(p->settle, EV_TIMEOUT, 0);
    }
}

void patience_heard(struct patience *p, struct evhttp_request *req) {
    struct evhttp_connection *connection = evhttp_request_get_connection(req);
    struct bufferevent *bev = connection ? evhttp_connection_get_bufferevent(connection) : NULL;
    struct asking *a = bev ? asking_of(p, bufferevent_getfd(bev)) : NULL;
    if (a) {
        a->since_s = 0;
    }
}

void patience_end(struct patience *p) {
    int64_t latest_s = now_s() - LIMIT_WEB_ASK_SECONDS;
    for (uint32_t fd = 0; fd < p->count; fd++) {
        struct asking *a = p->all[fd];
        struct stat st;
        if (a && a->since_s != 0 && a->since_s < latest_s) {
            a->since_s = 0;
            if (fstat((int)fd, &st) == 0 && st.st_ino == a->socket) {
                shutdown((int)fd, SHUT_RDWR); // evhttp sees that it ended
            }
        }
    }
}

void patience_free(struct patience *p) {
    if (!p) {
        return;
    }
    on_settle(-1, 0, p);
    for (uint32_t fd = 0; fd < p->count; fd++) {
        free(p->all[fd]);
    }
    event_free(p->settle);
    free(p->fresh);
    free(p->all);
    free(p);
}
