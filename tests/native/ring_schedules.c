// SPDX-License-Identifier: Apache-2.0
// Runs two producers and a drain (shim/c_src/ring.h, drain.c) on tiny rings in every order in which
// their atomic loads and stores can take effect, with every value that each load may return.
//
// What may be loaded. Each variable has a history of values. Who loads may get any of them that is
// not older than what it knows of: what it has loaded or stored itself, and what the one knew whose
// store it has loaded, if that was a release and this an acquire. The ring's words are no atomics:
// whoever reads one without knowing of its last write, or writes one without knowing that it was
// read, has raced, and the test fails. This is C11's order of release and acquire, without loads
// that return what is stored later. A store is done at once behind the step before it: who loads
// may get the older values all the same, and so no order is left out.
//
// The clock. Each look at it may find that it went on by a tick, or not. Who reads a later time
// than another thread did, knows what that one had loaded by then; not what it had stored, which
// may still be under way (a store waits in the processor while its next loads are done). Who has
// got a process from another thread looks at the clock a tick later at least.
//
// The state of a thread is what its loads have returned: it is run from its start again with these
// to go on. States that were met are not entered again; a hash of 64 bits tells.
//
// Checked at the end of each: each record came once and whole, or its drop was told, by a loss that
// covers its time; so many drops were told as there were; each process's records came in its order,
// and what it had dropped before them was told before them.
#include <inttypes.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drain.h"

enum { A, B, DRAIN, THREADS };
enum { RING_WORDS = 8, PLACES = 24, TICKS = 24, HISTORY = 16, LOG = 240 };
// locations: the atomics of each ring, then these
enum { HEAD, DROPPED, FIRST_DROP, LAST_DROP, TAIL, TOLD, OF_RING };
enum { RINGS_PLACES = 2 * OF_RING, BATON = RINGS_PLACES + 2, DONE, LOCATIONS = DONE + 2 };
// what a thread knows: the place in the history of each location, the number of steps of each
// thread
struct view {
    uint8_t of[LOCATIONS + THREADS];
};

struct value {
    uint64_t value;
    struct view view;
};

struct thread_state {
    uint16_t steps; // in the log
    uint8_t atomics;
    bool over;
    struct view knows;
    struct view loaded; // of that: what is not its own store
    uint64_t hash;      // of the log
    uint64_t log[LOG];
};

struct word {
    uint64_t value;
    uint8_t written; // the step of its producer that wrote it
    uint8_t read;    // that of the drain that read it last
};

struct state {
    uint8_t length[LOCATIONS];
    uint8_t now;
    struct value history[LOCATIONS][HISTORY];
    struct view tick[TICKS]; // what those knew who read that time
    struct word word[2][RING_WORDS];
    struct thread_state thread[THREADS];
};

// -- a scenario -----------------------------------------------------------------------------------

// What the threads do: 1, 2, … the records of the process that moves; a, b, … those of one that
// stays; > gives the moving one away for the n-th time, < waits until that was done.
struct scenario {
    const char *name;
    const char *script[2];
    unsigned drains; // before the last one, which begins when the producers are over
    unsigned room;   // records that a drain hands out at most
};

static const struct scenario *scenario;

struct written {
    bool put;
    bool kept;
    int64_t time;
};
struct handed {
    uint64_t id; // of a loss: how many
    int64_t time;
    int64_t until;
    bool loss;
    bool whole;
};

static struct ring rings[2];
static uint64_t words[2][RING_WORDS];
static ring_atomic places[2], baton, done[2];
static struct written written[128]; // by id
static struct handed handed[256];
static size_t handed_count;

// -- the model ------------------------------------------------------------------------------------

static struct state *state;
static int running;
static unsigned step;   // of the thread that runs
static bool performed;  // its next atomic was done
static unsigned choice; // which of the values that it may load
static unsigned choices;
static jmp_buf stop;
static bool checking; // all is over, and only replayed

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0xff51afd7ed558ccd;
    return hash ^ hash >> 32;
}

static void fail(const char *what) {
    printf("%s: %s\n", scenario->name, what);
    for (size_t i = 0; i < handed_count; i++) {
        printf("  %s %" PRIu64 " at %" PRId64 " until %" PRId64 "\n",
               handed[i].loss ? "loss" : "record", handed[i].id, handed[i].time, handed[i].until);
    }
    for (int id = 0; id < 128; id++) {
        if (written[id].put) {
            printf("  %c %s at %" PRId64 "\n", id, written[id].kept ? "kept" : "dropped",
                   written[id].time);
        }
    }
    exit(1);
}

static unsigned location_of(const ring_atomic *at) {
    for (unsigned r = 0; r < 2; r++) {
        const ring_atomic *of[OF_RING] = {&rings[r].head,       &rings[r].dropped,
                                          &rings[r].first_drop, &rings[r].last_drop,
                                          &rings[r].tail,       &rings[r].told};
        for (unsigned i = 0; i < OF_RING; i++) {
            if (of[i] == at) {
                return r * OF_RING + i;
            }
        }
        if (at == &places[r]) {
            return RINGS_PLACES + r;
        }
        if (at == &done[r]) {
            return DONE + r;
        }
    }
    return BATON;
}

static void join(struct view *view, const struct view *other) {
    for (size_t i = 0; i < sizeof view->of; i++) {
        if (other->of[i] > view->of[i]) {
            view->of[i] = other->of[i];
        }
    }
}

// The next step of the running thread. True: it was done before, and *value is what it returned.
static bool replayed(uint64_t *value) {
    struct thread_state *t = &state->thread[running];
    if (step < t->steps) {
        *value = t->log[step++];
        return true;
    }
    if (checking) {
        fail("a thread ran differently");
    }
    return false;
}

static void log_value(uint64_t value) {
    struct thread_state *t = &state->thread[running];
    if (t->steps == LOG) {
        fail("the log is too short");
    }
    t->log[t->steps++] = value;
    t->hash = mix(t->hash, value);
    step++;
}

// Begins an atomic step.
static struct thread_state *atomic_step(void) {
    struct thread_state *t = &state->thread[running];
    t->atomics++;
    t->knows.of[LOCATIONS + running] = t->atomics;
    return t;
}

// Begins one that others' steps make a difference to: one of these is done in a run.
static struct thread_state *scheduled_step(void) {
    if (performed) {
        longjmp(stop, 1);
    }
    performed = true;
    return atomic_step();
}

static uint64_t load_at(unsigned location, enum model_order order, unsigned least) {
    struct thread_state *t = scheduled_step();
    unsigned oldest = t->knows.of[location] > least ? t->knows.of[location] : least;
    choices = state->length[location] > oldest ? state->length[location] - oldest : 0;
    if (choice >= choices) {
        longjmp(stop, 2);
    }
    unsigned i = oldest + choice;
    const struct value *value = &state->history[location][i];
    t->knows.of[location] = (uint8_t)i;
    t->loaded.of[location] = (uint8_t)i;
    if (order == MODEL_ORDERED) {
        join(&t->knows, &value->view);
        join(&t->loaded, &value->view);
    }
    log_value(value->value);
    return value->value;
}

uint64_t model_load(const ring_atomic *at, enum model_order order) {
    uint64_t value;
    return replayed(&value) ? value : load_at(location_of(at), order, 0);
}

void model_store(const ring_atomic *at, uint64_t value, enum model_order order) {
    uint64_t ignored;
    if (replayed(&ignored)) {
        return;
    }
    struct thread_state *t = atomic_step();
    unsigned location = location_of(at);
    if (state->length[location] == HISTORY) {
        fail("the history is too short");
    }
    uint8_t i = state->length[location]++;
    struct value *v = &state->history[location][i];
    t->knows.of[location] = i;
    *v = (struct value){.value = value};
    v->view.of[location] = i;
    if (order == MODEL_ORDERED) {
        v->view = t->knows;
    }
    log_value(0);
}

static struct word *word_of(const uint64_t *at, unsigned *ring) {
    *ring = at >= words[1] && at < words[1] + RING_WORDS;
    if (at < words[*ring] || at >= words[*ring] + RING_WORDS) {
        fail("a word outside of the rings");
    }
    return &state->word[*ring][at - words[*ring]];
}

// Steps between atomics belong to the atomic before them: where they race, they do so in any order.
uint64_t model_read(const uint64_t *at) {
    uint64_t value;
    if (replayed(&value)) {
        return value;
    }
    unsigned ring;
    struct word *w = word_of(at, &ring);
    struct thread_state *t = &state->thread[running];
    if (w->written > t->knows.of[LOCATIONS + ring]) {
        fail("a word is read that may be written at the time");
    }
    w->read = t->atomics;
    log_value(w->value);
    return w->value;
}

void model_write(const uint64_t *at, uint64_t value) {
    uint64_t ignored;
    if (replayed(&ignored)) {
        return;
    }
    unsigned ring;
    struct word *w = word_of(at, &ring);
    struct thread_state *t = &state->thread[running];
    if (w->read > t->knows.of[LOCATIONS + DRAIN]) {
        fail("a word is written that may be read at the time");
    }
    w->value = value;
    // what is stored from the next atomic on, tells of it
    w->written = t->atomics + 1;
    w->read = 0;
    log_value(0);
}

static int64_t model_now(void) {
    uint64_t value;
    if (replayed(&value)) {
        return (int64_t)value;
    }
    struct thread_state *t = scheduled_step();
    choices = state->now + 1 < TICKS ? 2 : 1;
    if (choice >= choices) {
        longjmp(stop, 2);
    }
    state->now += (uint8_t)choice;
    for (unsigned i = 0; i < state->now; i++) {
        join(&t->knows, &state->tick[i]);
        join(&t->loaded, &state->tick[i]);
    }
    join(&state->tick[state->now], &t->loaded);
    log_value(state->now);
    return state->now;
}

// Waits until a variable has been stored n times, and knows what was known then.
static void await(const ring_atomic *at, unsigned n) {
    uint64_t value;
    if (!replayed(&value)) {
        load_at(location_of(at), MODEL_ORDERED, n);
    }
}

// A tick passes while a process goes from one thread to another.
static void give_away(void) {
    uint64_t ignored;
    if (!replayed(&ignored)) {
        scheduled_step();
        choices = 1;
        if (++state->now == TICKS) {
            fail("the clock is too short");
        }
        log_value(0);
    }
    model_store(&baton, 1, MODEL_ORDERED);
}

static int64_t end_of_time(void) {
    return TICKS;
}

// -- the threads ----------------------------------------------------------------------------------

static void producer(unsigned me) {
    unsigned turns = 0;
    if (!*scenario->script[me]) {
        return;
    }
    RING_RELEASE(&places[me], (uintptr_t)&rings[me]);
    for (const char *s = scenario->script[me]; *s; s++) {
        if (*s == '>') {
            give_away();
            continue;
        }
        if (*s == '<') { // the other one gives, too
            turns++;
            await(&baton, me == A ? 2 * turns : 2 * turns - 1);
            continue;
        }
        uint64_t count = *s % 2 ? 4 : 3; // so that records wrap in every place
        uint64_t record[4] = {count << RING_COUNT_SHIFT, (uint64_t)model_now(), (uint64_t)*s,
                              (uint64_t)*s * 7};
        bool kept = ring_put(&rings[me], record, count);
        written[(uint8_t)*s] = (struct written){true, kept, (int64_t)record[1]};
    }
    RING_RELEASE(&done[me], 1);
}

static unsigned room;

static bool take(void *to, union record *r) {
    (void)to;
    if (room == 0) {
        return false;
    }
    room--;
    uint64_t count = r->of.head >> RING_COUNT_SHIFT & 0xffff;
    bool loss = record_byte(r, RECORD_KIND) == RECORD_LOST;
    bool whole =
        count == (r->words[2] % 2 ? 4 : 3) && (count == 3 || r->words[3] == r->words[2] * 7);
    handed[handed_count++] = (struct handed){.id = r->words[2],
                                             .time = r->of.time,
                                             .until = loss ? r->of.until : 0,
                                             .loss = loss,
                                             .whole = loss || whole};
    if (handed_count == sizeof handed / sizeof *handed) {
        fail("too much is handed out");
    }
    return true;
}

static void drain(void) {
    static struct drain d;
    d = (struct drain){.now = model_now, .places = places, .count = 2};
    for (unsigned i = 0; i < scenario->drains; i++) {
        room = scenario->room;
        drain_run(&d, 0, take, NULL);
    }
    for (unsigned i = A; i <= B; i++) {
        if (*scenario->script[i]) {
            await(&done[i], 1);
        }
    }
    d.now = end_of_time;
    room = UINT32_MAX;
    if (drain_run(&d, 0, take, NULL)) {
        fail("the last drain has left something");
    }
}

// Runs a thread through what it has done, and its next step; `at_first`: up to that. Returns
// whether there was one with this choice.
static bool run(int thread, bool at_first) {
    running = thread;
    step = 0;
    performed = at_first;
    choices = 0;
    if (thread == DRAIN) {
        handed_count = 0;
        ring_init(&rings[A], words[A], RING_WORDS);
        ring_init(&rings[B], words[B], RING_WORDS);
    } else {
        ring_init(&rings[thread], words[thread], RING_WORDS);
    }
    int how = setjmp(stop);
    if (how == 0) {
        if (thread == DRAIN) {
            drain();
        } else {
            producer((unsigned)thread);
        }
        state->thread[thread].over = true;
    }
    return how != 2 && (performed || checking);
}

// -- the end of each ------------------------------------------------------------------------------

static bool told_before(size_t end, int64_t time) {
    for (size_t i = 0; i < end; i++) {
        if (handed[i].loss && handed[i].time <= time && time <= handed[i].until) {
            return true;
        }
    }
    return false;
}

static bool same_process(uint64_t id, uint64_t other, unsigned ring, unsigned other_ring) {
    bool moves = id <= '9', other_moves = other <= '9';
    return moves == other_moves && (moves || ring == other_ring);
}

static unsigned ring_of(uint64_t id) {
    return strchr(scenario->script[A], (int)id) ? A : B;
}

static void check_record(size_t i, bool *came) {
    uint64_t id = handed[i].id;
    if (!handed[i].whole || id >= 128 || !written[id].put || !written[id].kept ||
        written[id].time != handed[i].time) {
        fail("a record is not what was written");
    }
    if (came[id]) {
        fail("a record came twice");
    }
    came[id] = true;
    for (uint64_t other = 0; other < 128; other++) {
        if (!written[other].put || !same_process(id, other, ring_of(id), ring_of(other))) {
            continue;
        }
        if (other > id && came[other]) {
            fail("a process's records came in another order");
        }
        if (other < id && !written[other].kept && !told_before(i, written[other].time)) {
            fail("a drop was not told before what the process did after it");
        }
    }
}

static uint64_t ends, ends_with_loss;

static void check_end(void) {
    checking = true;
    memset(written, 0, sizeof written);
    for (int t = A; t < THREADS; t++) {
        run(t, false);
    }
    checking = false;
    bool came[128] = {false};
    uint64_t told = 0, dropped = 0;
    for (size_t i = 0; i < handed_count; i++) {
        if (handed[i].loss) {
            told += handed[i].id;
        } else {
            check_record(i, came);
        }
    }
    for (unsigned id = 0; id < 128; id++) {
        if (written[id].put && !written[id].kept) {
            dropped++;
            if (!told_before(handed_count, written[id].time)) {
                fail("a drop's time is in no loss");
            }
        } else if (written[id].put && !came[id]) {
            fail("a record never came");
        }
    }
    if (told != dropped) {
        fail("other drops were told than there were");
    }
    ends++;
    ends_with_loss += dropped > 0;
}

// -- all schedules --------------------------------------------------------------------------------

enum { MET_BITS = 22, DEPTH = 160 };
static struct state path[DEPTH];
static uint64_t *met;
static uint64_t states;

static uint64_t mix_view(uint64_t hash, const struct view *view) {
    for (size_t i = 0; i < sizeof view->of; i++) {
        hash = mix(hash, view->of[i]);
    }
    return hash;
}

static uint64_t hash_of(const struct state *s) {
    uint64_t hash = s->now;
    for (unsigned l = 0; l < LOCATIONS; l++) {
        hash = mix(hash, s->length[l]);
        for (unsigned i = 0; i < s->length[l]; i++) {
            hash = mix_view(mix(hash, s->history[l][i].value), &s->history[l][i].view);
        }
    }
    for (unsigned i = 0; i <= s->now; i++) {
        hash = mix_view(hash, &s->tick[i]);
    }
    for (unsigned r = 0; r < 2; r++) {
        for (unsigned i = 0; i < RING_WORDS; i++) {
            const struct word *w = &s->word[r][i];
            hash = mix(mix(hash, w->value), (uint64_t)w->written << 8 | w->read);
        }
    }
    for (unsigned t = 0; t < THREADS; t++) {
        const struct thread_state *thread = &s->thread[t];
        hash = mix(mix(hash, thread->steps), thread->hash);
        hash = mix_view(mix_view(hash, &thread->knows), &thread->loaded);
    }
    return hash == 0 ? 1 : hash;
}

// Whether a state was met; it is from now on.
static bool is_met(uint64_t hash) {
    uint64_t i = hash >> (64 - MET_BITS);
    while (met[i] != 0 && met[i] != hash) {
        i = (i + 1) & ((1U << MET_BITS) - 1);
    }
    if (met[i] == hash) {
        return true;
    }
    met[i] = hash;
    states++;
    if (states > (1U << MET_BITS) / 2) {
        fail("too many states");
    }
    return false;
}

// Enters every state that can follow the one at this depth, which is in path[depth].
static void visit(unsigned depth) {
    const struct state *from = &path[depth];
    struct state *next = &path[depth + 1];
    if (is_met(hash_of(from))) {
        return;
    }
    if (depth + 2 == DEPTH) {
        fail("a schedule is too long");
    }
    bool any = false, all_over = true;
    for (int t = A; t < THREADS; t++) {
        all_over = all_over && from->thread[t].over;
        unsigned had = from->thread[t].over ? 0 : 1;
        for (unsigned c = 0; c < had; c++) {
            *next = *from;
            state = next;
            choice = c;
            if (!run(t, false)) {
                break;
            }
            had = choices;
            any = true;
            visit(depth + 1);
        }
    }
    if (all_over) {
        *next = *from;
        state = next;
        check_end();
    } else if (!any) {
        fail("all wait");
    }
}

static void explore(const struct scenario *s) {
    scenario = s;
    met = calloc(1U << MET_BITS, sizeof *met);
    states = ends = ends_with_loss = 0;
    if (!met) {
        exit(2);
    }
    state = &path[0];
    *state = (struct state){.now = 1};
    memset(state->length, 1, sizeof state->length); // a 0, which everybody knows
    for (int t = A; t < THREADS; t++) {
        run(t, true);
    }
    visit(0);
    free(met);
    printf("%-28s %9" PRIu64 " states, %8" PRIu64 " ends, %8" PRIu64 " of them with a loss\n",
           s->name, states, ends, ends_with_loss);
    fflush(stdout);
}

int main(void) {
    static const struct scenario all[] = {
        {"a process moves", {"1>", "<2"}, 2, 9},
        {"to and fro", {"1><3", "<2>"}, 1, 9},
        {"beside others", {"1a>", "<2b"}, 1, 9},
        {"one record a drain", {"1a>", "<2"}, 2, 1},
        {"a full ring", {"bdfg", ""}, 2, 9},
        {"dropped, then moved", {"ab1>", "<2"}, 2, 9},
        {"full, and read slowly", {"abcd", ""}, 2, 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        explore(&all[i]);
    }
    return 0;
}
