// SPDX-License-Identifier: Apache-2.0
/* A canary for tests that judge times: how late does a process wake up that runs beside them at the
 * same priority, how much time did the hypervisor take, and how long did the processes that are
 * measured wait for a processor? Where one of these is more than little, the machine was not quiet,
 * and a time that was measured meanwhile says little about what was measured.
 *
 *   canary [--pid PID]...
 *
 * Says "watching" when it does, and sleeps for a millisecond again and again, until TERM or INT;
 * then prints one more line and ends with 0:
 *
 *   ms 4210 late_ms 9 worst_ms 8 stolen_ms 10 waited_ms 3
 *
 * ms is for how long it watched. late_ms is by how much its wake-ups came late, those together that
 * were late by more than a millisecond; worst_ms is the latest. stolen_ms is what /proc/stat says
 * that the hypervisor took from all processors. waited_ms is for how long threads of the processes
 * PID were ready to run and did not (of those threads that lived from the begin to the end). The
 * last two are 0 where the system does not say. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEP_NS = 1000000, SECOND_NS = 1000000000, MAX_THREADS = 2048 };

/* A thread and what it had waited for a processor when the canary began. */
struct thread {
    char path[64];
    unsigned long long waited_ns;
};

static struct thread threads[MAX_THREADS];
static int n_threads;

static volatile sig_atomic_t ended;

static void end(int signal_number) {
    (void)signal_number;
    ended = 1;
}

static int64_t now_ns(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

/* The stolen ticks of all processors since boot, in milliseconds. */
static long long stolen_ms(void) {
    unsigned long long ticks = 0;
    FILE *f = fopen("/proc/stat", "r");

    if (f == NULL)
        return 0;
    if (fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
        ticks = 0;
    fclose(f);
    return (long long)(ticks * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK));
}

/* The second number of a thread's schedstat; -1 when the thread is gone, or the system does not
 * say. */
static long long waited_ns(const char *path) {
    unsigned long long waited;
    FILE *f = fopen(path, "r");
    int n;

    if (f == NULL)
        return -1;
    n = fscanf(f, "%*u %llu", &waited);
    fclose(f);
    return n == 1 ? (long long)waited : -1;
}

static void add_threads(long pid) {
    char path[40];
    struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    if ((folder = opendir(path)) == NULL)
        return;
    while ((entry = readdir(folder)) != NULL && n_threads < MAX_THREADS) {
        struct thread *t = &threads[n_threads];
        long long waited;

        if (entry->d_name[0] == '.')
            continue;
        snprintf(t->path, sizeof t->path, "/proc/%ld/task/%ld/schedstat", pid, atol(entry->d_name));
        if ((waited = waited_ns(t->path)) < 0)
            continue;
        t->waited_ns = (unsigned long long)waited;
        n_threads++;
    }
    closedir(folder);
}

static long long waited_ms(void) {
    long long sum = 0;

    for (int i = 0; i < n_threads; i++) {
        long long waited = waited_ns(threads[i].path);

        if (waited >= 0)
            sum += waited - (long long)threads[i].waited_ns;
    }
    return sum / 1000000;
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = end};
    int64_t began, next, late = 0, worst = 0;
    long long stolen, waited;
    int i;

    for (i = 1; i + 1 < argc && strcmp(argv[i], "--pid") == 0; i += 2)
        add_threads(atol(argv[i + 1]));
    if (i < argc) {
        fputs("usage: canary [--pid PID]...\n", stderr);
        return 2;
    }
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    stolen = stolen_ms();
    puts("watching");
    fflush(stdout);
    began = next = now_ns();
    while (!ended) {
        struct timespec until;
        int64_t over;

        next += STEP_NS;
        until.tv_sec = (time_t)(next / SECOND_NS);
        until.tv_nsec = (long)(next % SECOND_NS);
        if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
            continue;
        over = now_ns() - next;
        if (over <= STEP_NS)
            continue;
        late += over;
        next += over; /* one delay is one late wake-up */
        if (over > worst)
            worst = over;
    }
    waited = waited_ms(); /* before anything else is done */
    printf("ms %lld late_ms %lld worst_ms %lld stolen_ms %lld waited_ms %lld\n",
           (long long)((now_ns() - began) / 1000000), (long long)(late / 1000000),
           (long long)(worst / 1000000), stolen_ms() - stolen, waited);
    return 0;
}
