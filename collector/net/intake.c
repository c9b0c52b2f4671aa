// SPDX-License-Identifier: Apache-2.0
// The thread waits for its sockets with epoll, not with an event base: there the event loop's
// thread may put in sockets, and take them out, while this one waits.
#include "net/intake.h"

#include <errno.h>
#include <openssl/err.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/limits.h"
#include "net/intake_stream.h"

enum {
    EVENTS = 64,              // that are fetched at a time
    RECORD_BYTES = 16 * 1024, // of TLS: what is left of one is in no socket
    STOP = LIMIT_CONNECTIONS  // in the place of a stream's: the thread shall end
};

struct intake_stream {
    struct intake *in;
    uint32_t place;
    int fd;
    SSL *ssl; // NULL: none
    struct intake_events events;
    uint64_t turns;
    enum { READS, ENDED, DAMAGED, TOLD } state;
};

struct intake {
    struct gate *gate; // protects places and what is in them, ended, and bytes
    int epoll, stop, news;
    pthread_t thread;
    struct event *has_news; // on the event loop
    void (*call)(void *context);
    void *context;
    struct place {
        struct intake_stream *stream; // NULL: free
        uint32_t generation;          // another one for each: what was fetched may be of the last
    } places[LIMIT_CONNECTIONS];
    uint32_t ended; // that are not told yet
    uint8_t bytes[LIMIT_INTAKE_BYTES];
};

static void wake(int fd) {
    (void)!write(fd, &(uint64_t){1}, sizeof(uint64_t));
}

void intake_news(struct intake *in) {
    wake(in->news);
}

// -- reading --------------------------------------------------------------------------------------

// Reads what is there, or (*more) one piece of it. *over: nothing comes any more.
static size_t read_tls(SSL *ssl, uint8_t *bytes, bool *over, bool *more) {
    size_t len = 0;
    while (LIMIT_INTAKE_BYTES - len >= RECORD_BYTES) {
        ERR_clear_error();
        int got = SSL_read(ssl, bytes + len, (int)(LIMIT_INTAKE_BYTES - len));
        if (got <= 0) {
            int why = SSL_get_error(ssl, got);
            *over = why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
            ERR_clear_error();
            return len;
        }
        len += (size_t)got;
    }
    *more = true;
    return len;
}

static size_t read_plain(int fd, uint8_t *bytes, bool *over, bool *more) {
    ssize_t got = read(fd, bytes, LIMIT_INTAKE_BYTES);
    *over = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
    *more = got == LIMIT_INTAKE_BYTES;
    return got > 0 ? (size_t)got : 0;
}

// Behind the gate.
static void turn(struct intake_stream *s) {
    struct intake *in = s->in;
    bool over = false, more = false;
    size_t len = s->ssl ? read_tls(s->ssl, in->bytes, &over, &more)
                        : read_plain(s->fd, in->bytes, &over, &more);
    s->turns += len > 0;
    s->state = over ? ENDED : READS;
    if (len > 0 &&
        !s->events.data(s->events.user, s->events.stream, slice_of(in->bytes, len), more)) {
        s->state = DAMAGED;
    }
    if (s->state != READS) {
        epoll_ctl(in->epoll, EPOLL_CTL_DEL, s->fd, NULL);
        in->ended++;
        wake(in->news);
    }
}

static void *run(void *arg) {
    struct intake *in = arg;
    struct epoll_event events[EVENTS];
    for (;;) {
        int count = epoll_wait(in->epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            uint32_t place = (uint32_t)events[i].data.u64;
            if (place == STOP) {
                return NULL;
            }
            gate_work(in->gate);
            const struct place *p = &in->places[place];
            if (p->stream && p->generation == events[i].data.u64 >> 32 &&
                p->stream->state == READS) {
                turn(p->stream);
            }
            gate_rest(in->gate);
        }
    }
}

// -- on the event loop ----------------------------------------------------------------------------

// One that is over and not told yet; NULL when there is none.
static struct intake_stream *next_ended(struct intake *in, bool *damaged) {
    struct intake_stream *found = NULL;
    gate_visit(in->gate);
    for (uint32_t i = 0; in->ended > 0 && !found && i < LIMIT_CONNECTIONS; i++) {
        struct intake_stream *s = in->places[i].stream;
        found = s && (s->state == ENDED || s->state == DAMAGED) ? s : NULL;
    }
    if (found) {
        *damaged = found->state == DAMAGED;
        found->state = TOLD;
        in->ended--;
    }
    gate_part(in->gate);
    return found;
}

static void on_news(evutil_socket_t fd, short what, void *context) {
    (void)what;
    struct intake *in = context;
    uint64_t count;
    bool damaged = false;
    (void)!read(fd, &count, sizeof count);
    in->call(in->context);
    for (struct intake_stream *s; (s = next_ended(in, &damaged));) {
        s->events.over(s->events.context, damaged);
    }
}

struct intake_stream *intake_add(struct intake *in, int fd, SSL *ssl,
                                 const struct intake_events *events) {
    struct intake_stream *s = calloc(1, sizeof *s);
    uint32_t place = 0;
    if (!s) {
        return NULL;
    }
    gate_visit(in->gate);
    while (place < LIMIT_CONNECTIONS && in->places[place].stream) {
        place++;
    }
    struct epoll_event wanted = {.events = EPOLLIN};
    *s = (struct intake_stream){.in = in, .place = place, .fd = fd, .ssl = ssl, .events = *events};
    if (place < LIMIT_CONNECTIONS) {
        wanted.data.u64 = (uint64_t)++in->places[place].generation << 32 | place;
    }
    if (place == LIMIT_CONNECTIONS || epoll_ctl(in->epoll, EPOLL_CTL_ADD, fd, &wanted) != 0) {
        free(s);
        s = NULL;
    } else {
        in->places[place].stream = s;
        if (ssl) { // it may hold bytes that the socket has no more
            turn(s);
        }
    }
    gate_part(in->gate);
    return s;
}

void intake_remove(struct intake_stream *s) {
    struct intake *in = s->in;
    gate_visit(in->gate);
    if (s->state == READS) {
        epoll_ctl(in->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    }
    in->ended -= s->state == ENDED || s->state == DAMAGED;
    in->places[s->place].stream = NULL;
    gate_part(in->gate);
    free(s);
}

void intake_visit(struct intake *in) {
    if (in) {
        gate_visit(in->gate);
    }
}

void intake_part(struct intake *in) {
    if (in) {
        gate_part(in->gate);
    }
}

uint64_t intake_turns(const struct intake_stream *s) {
    gate_visit(s->in->gate);
    uint64_t turns = s->turns;
    gate_part(s->in->gate);
    return turns;
}

// -- start and end --------------------------------------------------------------------------------

static void close_all(struct intake *in) {
    const int files[] = {in->epoll, in->stop, in->news};
    if (in->has_news) {
        event_free(in->has_news);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i] >= 0) {
            close(files[i]);
        }
    }
    free(in);
}

struct intake *intake_start(struct event_base *base, struct gate *gate, void (*news)(void *context),
                            void *context) {
    struct intake *in = calloc(1, sizeof *in);
    if (!in) {
        return NULL;
    }
    in->gate = gate;
    in->call = news;
    in->context = context;
    in->epoll = epoll_create1(EPOLL_CLOEXEC);
    in->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    in->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    in->has_news = event_new(base, in->news, EV_READ | EV_PERSIST, on_news, in);
    struct epoll_event stop = {.events = EPOLLIN, .data.u64 = STOP};
    if (in->epoll < 0 || in->stop < 0 || in->news < 0 || !in->has_news ||
        event_add(in->has_news, NULL) != 0 ||
        epoll_ctl(in->epoll, EPOLL_CTL_ADD, in->stop, &stop) != 0 ||
        pthread_create(&in->thread, NULL, run, in) != 0) {
        close_all(in);
        return NULL;
    }
    pthread_setname_np(in->thread, "intake"); // for who looks at a process's threads
    return in;
}

void intake_stop(struct intake *in) {
    if (in) {
        wake(in->stop);
        pthread_join(in->thread, NULL);
        close_all(in);
    }
}
