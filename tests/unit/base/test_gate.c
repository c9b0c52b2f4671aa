// SPDX-License-Identifier: Apache-2.0
// A worker who rests for no time at all, and a visitor who gets in nevertheless. Built with the
// thread sanitizer where the compiler has it.
#include "base/gate.h"

#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "unit.h"

enum { VISITS = 200, PIECE = 2000 };

static struct gate gate;
static atomic_bool over;
static uint64_t pieces, inside; // behind the gate

static void *work(void *arg) {
    (void)arg;
    while (!atomic_load(&over)) {
        gate_work(&gate);
        pieces++;
        for (int i = 0; i < PIECE; i++) {
            inside++;
        }
        gate_rest(&gate);
    }
    return NULL;
}

static void gets_in(void **state) {
    (void)state;
    pthread_t thread;
    int late = 0;
    gate_init(&gate);
    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    for (int i = 0; i < VISITS; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        gate_visit(&gate);
        gate_visit(&gate); // he may come twice
        uint64_t at = pieces;
        assert_int_equal(inside, pieces * PIECE); // never in the middle of a piece
        gate_part(&gate);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        assert_int_equal(pieces, at); // and nobody works until he has gone for good
        gate_part(&gate);
        // who asks again at once waits for one piece at most
        gate_visit(&gate);
        late += pieces - at > 1;
        gate_part(&gate);
    }
    assert_true(late < VISITS / 2); // but where the machine had others to run in between
    // who visits all the time leaves the worker his turns
    uint64_t worked = 0;
    for (int64_t end = clock_monotonic() + 100 * GATE_WORK_NS; clock_monotonic() < end;) {
        gate_visit(&gate);
        worked = worked > 0 ? worked : pieces;
        gate_part(&gate);
    }
    gate_visit(&gate);
    assert_true(pieces > worked);
    gate_part(&gate);
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    assert_true(pieces > 0);
    gate_destroy(&gate);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gets_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
