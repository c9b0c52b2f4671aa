// SPDX-License-Identifier: Apache-2.0
// Splits a capture into its frames and does nothing else: the floor for whoever reads one.
//
// usage: bench_frames FILE
// Prints: frames N dropped N bytes N cpu_us N wall_us N. The times hold mapping the file and its
// page faults, as replay's do. Exit status: 0 done, 1 cannot be read, 2 damaged or cut.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "codec/frame.h"

static int64_t now_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int main(int argc, char **argv) {
    struct stat st;
    int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
        fprintf(stderr, "usage: bench_frames FILE, a capture that can be read\n");
        return EXIT_FAILURE;
    }
    int64_t cpu = now_us(CLOCK_PROCESS_CPUTIME_ID), wall = now_us(CLOCK_MONOTONIC);
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    madvise(data, (size_t)st.st_size, MADV_SEQUENTIAL);
    struct slice rest = slice_of(data, (size_t)st.st_size);
    uint64_t frames = 0, dropped = 0;
    while (rest.len > 0) {
        struct frame frame;
        long used = frame_next(rest, &frame);
        size_t size = (size_t)used + (used > 0 && frame.kind == FRAME_OVERSIZED ? frame.size : 0);
        if (used <= 0 || size > rest.len) {
            fprintf(stderr, "damaged or cut at byte %zu\n", (size_t)st.st_size - rest.len);
            return 2;
        }
        frames +=
            frame.kind == FRAME_TERM || frame.kind == FRAME_BLOCK || frame.kind == FRAME_OVERSIZED;
        dropped += frame.kind == FRAME_DROPPED ? frame.size : 0;
        rest = slice_of(rest.data + size, rest.len - size);
    }
    cpu = now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = now_us(CLOCK_MONOTONIC) - wall;
    printf("frames %" PRIu64 " dropped %" PRIu64 " bytes %" PRIu64 " cpu_us %" PRId64
           " wall_us %" PRId64 "\n",
           frames, dropped, (uint64_t)st.st_size, cpu, wall);
    return EXIT_SUCCESS;
}
