// SPDX-License-Identifier: Apache-2.0
// For tests of what talks to an engine: a server of HTTP on loopback, in a thread of its own, that
// answers as a test says, whatever that is.
#pragma once

#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "export/target.h"

enum { ENGINE_REQUEST_BYTES = 16 << 20 };

struct engine_request {
    char head[1 << 16]; // with a zero at its end
    const uint8_t *body;
    size_t len;
};

// Answers a request on a connection, which is closed afterwards.
typedef void engine_answer(void *arg, int fd, const struct engine_request *request);

struct engine {
    int listens;
    struct target target;
    pthread_t thread;
    engine_answer *answer;
    void *arg;
    atomic_int requests;
    atomic_bool stopped;
};

static inline void engine_write(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n <= 0) {
            return; // it has had enough
        }
        bytes += n;
        len -= (size_t)n;
    }
}

// An answer as ClickHouse gives one.
static inline void engine_say(int fd, int status, const char *body) {
    char text[4096];
    snprintf(text, sizeof text,
             "HTTP/1.1 %d Words\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status,
             strlen(body), body);
    engine_write(fd, text, strlen(text));
}

// Reads a request. False: the connection was closed before.
static inline bool engine_read(int fd, uint8_t *bytes, struct engine_request *out) {
    size_t have = 0, head = 0, wanted = 0;
    while (head == 0 || have < head + wanted) {
        ssize_t n = read(fd, bytes + have, ENGINE_REQUEST_BYTES - have);
        if (n <= 0) {
            return false;
        }
        have += (size_t)n;
        const uint8_t *end = head ? NULL : memmem(bytes, have, "\r\n\r\n", 4);
        if (end) {
            head = (size_t)(end - bytes) + 4;
            assert_true(head < sizeof out->head);
            memcpy(out->head, bytes, head);
            out->head[head] = 0;
            const char *length = strcasestr(out->head, "content-length:");
            wanted = length ? strtoul(length + strlen("content-length:"), NULL, 10) : 0;
            assert_true(head + wanted < ENGINE_REQUEST_BYTES);
        }
    }
    out->body = bytes + head;
    out->len = wanted;
    return true;
}

static inline void *engine_thread(void *arg) {
    struct engine *e = arg;
    uint8_t *bytes = malloc(ENGINE_REQUEST_BYTES);
    struct engine_request *request = malloc(sizeof *request);
    for (int fd; (fd = accept(e->listens, NULL, NULL)) >= 0; close(fd)) {
        if (!e->stopped && engine_read(fd, bytes, request)) {
            e->requests++;
            e->answer(e->arg, fd, request);
        }
    }
    free(request);
    free(bytes);
    return NULL;
}

static inline void engine_start(struct engine *e, engine_answer *answer, void *arg) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    signal(SIGPIPE, SIG_IGN);
    *e = (struct engine){.listens = socket(AF_INET, SOCK_STREAM, 0), .answer = answer, .arg = arg};
    assert_int_equal(bind(e->listens, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(e->listens, 5), 0);
    assert_int_equal(getsockname(e->listens, (struct sockaddr *)&at, &len), 0);
    e->target = (struct target){.user = "user", .host = "127.0.0.1", .database = "kprof"};
    e->target.port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&e->thread, NULL, engine_thread, e), 0);
}

static inline void engine_stop(struct engine *e) {
    e->stopped = true;
    shutdown(e->listens, SHUT_RDWR);
    pthread_join(e->thread, NULL);
    close(e->listens);
}
