// SPDX-License-Identifier: Apache-2.0
// A capture taken in as the collector does with --threads: as the streams of several nodes, each of
// one pipeline, a piece of each in turn. One thread takes in all of them, and flushes; or each of
// several has its part behind the gate of its pipeline, and the main thread visits for the flush.
//
// usage: bench_threads FILE THREADS NODES ROUNDS NAME=M:F/A...
// The first tier opens requests. Each node has the capture ROUNDS times.
// Prints: messages N complete N wall_us N cpu_us N. Exit status: 0 done, 1 not.
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "codec/mfa.h"
#include "ingest/capture.h"
#include "ingest/pipeline.h"

enum { MOST_NODES = 32, FLUSH_NS = 200000000, VISIT_MS = 10 };

static struct slice file;
static char **tiers;
static int tier_count;
static uint32_t threads, node_count, rounds;

static struct ingest {
    struct pipeline *pipeline;
    struct stats *spare;
    struct pipeline_node *nodes[MOST_NODES];
    struct pipeline_stream stream;
    uint32_t count; // of nodes
    pthread_t thread;
} ingests[LIMIT_PIPELINES];
static atomic_uint running;

static void flush(struct ingest *in) {
    stats_reset(in->spare);
    pipeline_visit(in->pipeline);
    in->spare = pipeline_swap(in->pipeline, in->spare);
    pipeline_part(in->pipeline);
}

// Takes in all that there is; alone: on the main thread, without a gate.
static void take_in(struct ingest *in, bool alone) {
    int64_t flush_at = clock_monotonic() + FLUSH_NS, cut;
    for (uint32_t round = 0; round < rounds; round++) {
        for (size_t at = 0; at < file.len; at += LIMIT_INTAKE_BYTES) {
            size_t left = file.len - at;
            size_t len = left < LIMIT_INTAKE_BYTES ? left : LIMIT_INTAKE_BYTES;
            for (uint32_t i = 0; i < in->count; i++) {
                if (!alone) {
                    gate_work(pipeline_gate(in->pipeline));
                }
                if (at == 0) {
                    pipeline_begin(in->nodes[i], &in->stream);
                }
                pipeline_feed(in->nodes[i], slice_of(file.data + at, len));
                if (at + len == file.len) {
                    pipeline_end(in->nodes[i], true, &cut);
                }
                if (!alone) {
                    gate_rest(pipeline_gate(in->pipeline));
                }
            }
            if (alone && clock_monotonic() >= flush_at) {
                flush(in);
                flush_at = clock_monotonic() + FLUSH_NS;
            }
        }
    }
}

static void *work(void *ingest) {
    take_in(ingest, false);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static bool add_node(struct ingest *in, uint32_t number, const struct capture *capture) {
    char name[32];
    struct tier_set set;
    snprintf(name, sizeof name, "node%u@bench", number);
    struct pipeline_node *n = pipeline_node(in->pipeline, slice_text(name));
    if (!n || !tier_set_init(&set)) {
        return false;
    }
    for (int i = 0; i < tier_count; i++) {
        struct mfa f;
        const char *equals = strchr(tiers[i], '=');
        if (!equals || !mfa_parse(equals + 1, &f)) {
            return false;
        }
        struct slice text = slice_of((const uint8_t *)tiers[i], (size_t)(equals - tiers[i]));
        uint16_t tier =
            directory_tier_of(pipeline_directory(in->pipeline), pipeline_node_id(n), text);
        tier_set_add(&set, slice_text(f.module), slice_text(f.function), f.arity, tier);
        in->stream.entry = i == 0 ? tier : in->stream.entry;
    }
    pipeline_set_tiers(n, set);
    pipeline_set_clock(n, 1000000000, capture->wall ? capture->offset : -capture->first);
    in->nodes[in->count++] = n;
    return true;
}

static bool prepare(struct pipeline_names *names) {
    struct capture capture = capture_probe(file);
    struct pipeline_options options = {
        .names = names, .bucket_s = 10, .timeout_ns = 30000000000, .shared = true};
    for (uint32_t i = 0; i < threads; i++) {
        struct ingest *in = &ingests[i];
        in->pipeline = pipeline_new(&options);
        in->spare = in->pipeline ? pipeline_stats_new(in->pipeline) : NULL;
        if (!in->spare) {
            return false;
        }
    }
    for (uint32_t i = 0; i < node_count; i++) {
        if (!add_node(&ingests[i % threads], i, &capture)) {
            return false;
        }
    }
    return true;
}

static void run(void) {
    if (threads == 1) {
        take_in(&ingests[0], true);
        return;
    }
    atomic_store(&running, threads);
    for (uint32_t i = 0; i < threads; i++) {
        if (pthread_create(&ingests[i].thread, NULL, work, &ingests[i]) != 0) {
            abort();
        }
    }
    for (int64_t flush_at = clock_monotonic() + FLUSH_NS; atomic_load(&running) > 0;) {
        usleep(VISIT_MS * 1000);
        for (uint32_t i = 0; clock_monotonic() >= flush_at && i < threads; i++) {
            flush(&ingests[i]);
        }
        flush_at += clock_monotonic() >= flush_at ? FLUSH_NS : 0;
    }
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(ingests[i].thread, NULL);
    }
}

static bool map_file(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
        return false;
    }
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    file = slice_of(data, (size_t)st.st_size);
    return data != MAP_FAILED;
}

int main(int argc, char **argv) {
    if (argc < 6 || !map_file(argv[1])) {
        fprintf(stderr, "usage: bench_threads FILE THREADS NODES ROUNDS NAME=M:F/A...\n");
        return EXIT_FAILURE;
    }
    threads = (uint32_t)atoi(argv[2]);
    node_count = (uint32_t)atoi(argv[3]);
    rounds = (uint32_t)atoi(argv[4]);
    tiers = argv + 5;
    tier_count = argc - 5;
    hash_seed();
    bool good = threads >= 1 && threads <= LIMIT_PIPELINES && node_count <= MOST_NODES;
    struct pipeline_names *names = good ? pipeline_names_new(threads) : NULL;
    if (!names || !prepare(names)) {
        fprintf(stderr, "bench_threads: wrong numbers or tiers, or out of memory\n");
        return EXIT_FAILURE;
    }
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    int64_t began = clock_monotonic();
    run();
    int64_t wall = clock_monotonic() - began;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    int64_t cpu_us =
        (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000;
    uint64_t messages = 0, complete = 0;
    for (uint32_t i = 0; i < threads; i++) {
        for (uint32_t k = 0; k < ingests[i].count; k++) {
            struct pipeline_totals t = pipeline_totals(ingests[i].nodes[k]);
            messages += t.messages;
            complete += t.complete;
        }
    }
    printf("messages %" PRIu64 " complete %" PRIu64 " wall_us %" PRId64 " cpu_us %" PRId64 "\n",
           messages, complete, wall / 1000, cpu_us);
    return EXIT_SUCCESS;
}
