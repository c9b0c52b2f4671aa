// SPDX-License-Identifier: Apache-2.0
#include "base/lookup.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct job {
    char *host;
    int family;
    bool done;
    int error;
    struct addrinfo *found;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // protects the rest
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct job *pending; // NULL: none. Another one that is not done belongs to its thread

static void job_free(struct job *j) {
    if (j->found) {
        freeaddrinfo(j->found);
    }
    free(j->host);
    free(j);
}

static void *work(void *context) {
    struct job *j = context;
    struct addrinfo wanted = {.ai_family = j->family, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = getaddrinfo(j->host, NULL, &wanted, &found);
    pthread_mutex_lock(&mutex);
    j->error = error;
    j->found = error == 0 ? found : NULL;
    j->done = true;
    if (j != pending) {
        job_free(j);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static struct job *begin(const char *host, int family) {
    pthread_t thread;
    struct job *j = calloc(1, sizeof *j);
    char *copy = strdup(host);
    if (j && copy) {
        *j = (struct job){.host = copy, .family = family};
        if (pthread_create(&thread, NULL, work, j) == 0) {
            pthread_detach(thread);
            return j;
        }
    }
    free(copy);
    free(j);
    return NULL;
}

static void drop(void) {
    if (pending && pending->done) {
        job_free(pending);
    }
    pending = NULL;
}

int lookup(const char *host, int family, int64_t deadline_ns, struct addrinfo **found) {
    const struct timespec deadline = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    int error = EAI_AGAIN;
    *found = NULL;
    pthread_mutex_lock(&mutex);
    if (pending && (strcmp(pending->host, host) != 0 || pending->family != family)) {
        drop();
    }
    pending = pending ? pending : begin(host, family);
    while (pending && !pending->done &&
           pthread_cond_clockwait(&changed, &mutex, CLOCK_MONOTONIC, &deadline) == 0) {
    }
    if (!pending) {
        error = EAI_MEMORY;
    } else if (pending->done) {
        error = pending->error;
        *found = pending->found;
        pending->found = NULL;
        drop();
    }
    pthread_mutex_unlock(&mutex);
    return error;
}
