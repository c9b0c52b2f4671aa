// SPDX-License-Identifier: Apache-2.0
// Rings and drain (shim/c_src) with real threads: processes that move between four of them at
// random, a reader that is slow at times. Each record comes whole, each process's come in its
// order, and what is missing of them was told as lost by then, exactly.
//   ring_threads [RECORDS]
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "drain.h"

enum { WORKERS = 4, PROCESSES = 24, RING_WORDS = 1 << 14 };

struct process {
    pthread_mutex_t runs; // on one thread at a time
    uint64_t made;
    uint64_t seen; // the reader's
};

static struct process processes[PROCESSES];
static struct ring rings[WORKERS];
static uint64_t words[WORKERS][RING_WORDS];
static ring_atomic places[WORKERS];
static uint64_t records = 2000000; // in all
static uint64_t gaps, told, came;

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("line %d: not so: %s\n", __LINE__, #what);                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t any(uint64_t *seed, uint64_t below) {
    *seed = *seed * 6364136223846793005 + 1442695040888963407;
    return (*seed >> 33) % below;
}

// Puts a record. Who has to drop one waits most times, so that both full and empty rings are
// common.
static void make_record(struct ring *ring, struct process *p, uint64_t *seed) {
    uint64_t record[40], count = 4 + any(seed, 30);
    p->made++;
    record[0] = count << RING_COUNT_SHIFT;
    record[1] = (uint64_t)now();
    record[2] = (uint64_t)(p - processes);
    record[3] = p->made;
    for (uint64_t i = 4; i < count; i++) {
        record[i] = p->made * 31 + i;
    }
    if (!ring_put(ring, record, count) && any(seed, 8) > 0) {
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

static void *work(void *context) {
    size_t me = (size_t)(uintptr_t)context;
    uint64_t seed = me, left = records / WORKERS;
    ring_init(&rings[me], words[me], RING_WORDS);
    RING_RELEASE(&places[me], (uint64_t)(uintptr_t)&rings[me]);
    while (left > 0) {
        struct process *p = &processes[any(&seed, PROCESSES)];
        if (pthread_mutex_trylock(&p->runs) != 0) {
            continue;
        }
        for (uint64_t n = 1 + any(&seed, 9); n > 0 && left > 0; n--, left--) {
            make_record(&rings[me], p, &seed);
        }
        pthread_mutex_unlock(&p->runs);
    }
    return NULL;
}

static bool take(void *to, union record *r) {
    unsigned *room = to;
    if (*room == 0) {
        return false;
    }
    --*room;
    if (record_byte(r, RECORD_KIND) == RECORD_LOST) {
        CHECK(r->of.messages > 0 && r->of.time <= r->of.until);
        told += r->of.messages;
        return true;
    }
    CHECK(r->words[2] < PROCESSES);
    struct process *p = &processes[r->words[2]];
    uint64_t count = r->of.head >> RING_COUNT_SHIFT & 0xffff;
    for (uint64_t i = 4; i < count; i++) {
        CHECK(r->words[i] == r->words[3] * 31 + i);
    }
    CHECK(r->words[3] > p->seen);
    gaps += r->words[3] - p->seen - 1;
    CHECK(gaps <= told);
    p->seen = r->words[3];
    came++;
    return true;
}

int main(int argc, char **argv) {
    static struct drain drain = {.now = now, .places = places, .count = WORKERS};
    pthread_t threads[WORKERS];
    uint64_t seed = 1;
    if (argc > 1) {
        records = strtoull(argv[1], NULL, 10);
    }
    for (size_t i = 0; i < PROCESSES; i++) {
        pthread_mutex_init(&processes[i].runs, NULL);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i) == 0);
    }
    uint64_t made = records / WORKERS * WORKERS;
    while (came + told < made) {
        unsigned room = 1 + (unsigned)any(&seed, 3000);
        drain_run(&drain, 0, take, &room);
        if (any(&seed, 100) == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    }
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < PROCESSES; i++) {
        gaps += processes[i].made - processes[i].seen;
    }
    unsigned room = 1;
    CHECK(!drain_run(&drain, 0, take, &room) && room == 1);
    CHECK(came + told == made && gaps == told && came > 0 && told > 0);
    printf("%" PRIu64 " records came, %" PRIu64 " were told as lost\n", came, told);
    return 0;
}
