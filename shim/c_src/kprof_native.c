// SPDX-License-Identifier: Apache-2.0
// The native tracer: an erl_tracer that writes trace events into rings, a ring for each thread of
// the VM, and hands them out to the relay as frames of the trace stream (op 2, blocks).
//
// The Erlang module kprof_native loads it (erlang:load_nif) and has these functions as stubs:
//
//   enabled/3, enabled_call/3, trace/5   what the VM calls of a tracer {kprof_native, State}
//   open(Options) -> State | full | busy   begins a trace; State is an integer. full: there are 8;
//       busy: somebody else is opening one
//       #{apart => boolean(), ring_bytes => pos_integer()}: whether it is of a full trace's own
//       trace session; the size of a ring, 64 KB to 64 MB, a power of two, 2 MB without
//   read(State) -> {[Frame], More} | busy   what has come, as binaries of a whole frame each. More:
//       true when there is more already. busy: somebody else is reading
//   totals(State) -> {Messages, Bytes, Dropped} | busy   read, and told as lost, so far
//   close(State) -> ok                   ends it; what was not read by then is gone
//
// Each is a badarg for a State that is over. What is over removes itself from processes that still
// have it as their tracer. The order in the end: flags off, read until nothing more comes, close.
//
// Threads. The callbacks run on any thread of the VM, dirty schedulers too, beside each other and
// beside everything else here. They take no lock and wait for nobody; a thread that traces for the
// first time allocates its ring. open, read and totals exclude each other by the slot's `taken`;
// close only makes the generation 0.
// Rings stay when a trace ends, as a thread may still be writing; the slot's next trace has them,
// and knows what is not its own by the generation in each record. unload frees them: the VM lets no
// callback run then.
//
// A thread is known by enif_thread_self, not by thread-specific data: whoever destroys a key of
// that must have cleared it in all threads, or its next owner finds our values, and no library can
// do so in a VM's schedulers.
#include "block.h"
#include "drain.h"
#include "note.h"

// What is built with the headers of a newer release loads into OTP 25, too: nothing newer is used.
#undef ERL_NIF_MINOR_VERSION
#define ERL_NIF_MINOR_VERSION 16
#undef ERL_NIF_MIN_ERTS_VERSION
#define ERL_NIF_MIN_ERTS_VERSION "erts-12.0"

enum {
    SLOTS = 8, // traces at a time
    SLOT_BITS = 3,
    THREADS = DRAIN_RINGS,
    RING_BYTES = 2 << 20,
    RING_BYTES_LEAST = 64 << 10,
    RING_BYTES_MOST = 64 << 20,
    FRAME_HEADER = 5,
    FRAME_OP_BLOCK = 2,
    READ_BLOCKS = 2 // of a call of read, so that it stays near a millisecond
};

struct moment {
    int64_t clock, vm; // ns
};

struct slot {
    // of the trace that it has, 0: none. Its state is generation << SLOT_BITS | slot.
    ring_atomic generation;
    ring_atomic taken;         // somebody opens or reads it
    _Atomic uint64_t homeless; // records of threads that could get no ring: lost
    // of the trace; who has `taken` it, reads and writes these
    uint64_t homeless_told;
    int64_t since;                // when it began
    struct moment before, latest; // of the last two reads
    int64_t told;                 // the latest time of a record, as the VM's
    uint64_t messages, bytes, dropped;
    _Atomic uint64_t ring_words; // of a new ring
    ring_atomic places[THREADS]; // of the threads' rings
    struct drain drain;
    struct block block;
    uint8_t flags; // of its blocks
    uint8_t frame[FRAME_HEADER + BLOCK_BYTES];
};

static struct slot slots[SLOTS];
static ring_atomic threads[THREADS]; // what enif_thread_self says of each; its place
static uint64_t generations;         // of the last trace
static _Atomic uint64_t opening;     // somebody opens one

static struct note_atoms atoms;
static struct {
    ERL_NIF_TERM trace, discard, remove, ok, busy, full, yes, no, trace_status;
    ERL_NIF_TERM apart, ring_bytes, seq_trace;
    // kinds of events
    ERL_NIF_TERM call, return_from, exception_from, return_to, in, out, out_exited;
    ERL_NIF_TERM gc_minor_start, gc_major_start, gc_minor_end, gc_major_end;
} atom;

// -- time -----------------------------------------------------------------------------------------

// Each C library has it, under the same name. In the VM's own way to the time it is a third of what
// that costs, and who is traced pays for it at each event.
struct clock_time {
    long s, ns;
};
int clock_gettime(int clock, struct clock_time *time);
enum { MONOTONIC = 1 }; // <time.h>'s CLOCK_MONOTONIC

// The clock of the records, ns.
static int64_t now(void) {
    struct clock_time t;
    clock_gettime(MONOTONIC, &t);
    return t.s * 1000000000L + t.ns;
}

// What the records' clock and the VM's monotonic time say at the same moment. Of some tries it is
// the one that took least, as this thread may lose its processor between the two.
static struct moment moment_now(void) {
    enum { TRIES = 5, QUICK_NS = 1000 };
    struct moment best = {0};
    int64_t least = INT64_MAX;
    for (int i = 0; i < TRIES && least > QUICK_NS; i++) {
        int64_t begin = now(), vm = enif_monotonic_time(ERL_NIF_NSEC), took = now() - begin;
        if (took < least) {
            least = took;
            best = (struct moment){begin + took / 2, vm};
        }
    }
    return best;
}

// The VM's time of a time of the records' clock. Between two reads the VM's goes as fast as it went
// from the one to the other: it may be a hundredth slower or faster than the kernel's, to follow
// the clock on the wall. Before and behind them both go alike.
static int64_t vm_time(const struct slot *slot, int64_t time) {
    const struct moment *a = &slot->before, *b = &slot->latest;
    if (time >= b->clock) {
        return b->vm + (time - b->clock);
    }
    int64_t ahead = (b->vm - a->vm) - (b->clock - a->clock);
    double share = time > a->clock ? (double)(time - a->clock) / (double)(b->clock - a->clock) : 0;
    return a->vm + (time - a->clock) + (int64_t)((double)ahead * share);
}

// -- states ---------------------------------------------------------------------------------------

// The slot of a state whose trace goes on, and its generation; NULL: it is over.
static struct slot *slot_of(ErlNifEnv *env, ERL_NIF_TERM state, uint64_t *generation) {
    ErlNifUInt64 value;
    if (!enif_get_uint64(env, state, &value)) {
        return NULL;
    }
    struct slot *slot = &slots[value & (SLOTS - 1)];
    *generation = value >> SLOT_BITS;
    return *generation != 0 && RING_ACQUIRE(&slot->generation) == *generation ? slot : NULL;
}

// -- the traced processes' side -------------------------------------------------------------------

// The place of the thread that calls; THREADS: there are too many.
static size_t thread_place(void) {
    uint64_t self = (uint64_t)(uintptr_t)enif_thread_self();
    size_t place = (size_t)((self >> 4) * 0x9e3779b97f4a7c15 >> 54);
    _Static_assert(THREADS == 1 << 10, "the hash has 10 bits");
    for (size_t i = 0; i < THREADS; i++, place = (place + 1) % THREADS) {
        uint64_t owner = RING_ACQUIRE(&threads[place]);
        if (owner == self ||
            (owner == 0 && atomic_compare_exchange_strong(&threads[place], &owner, self))) {
            return place;
        }
    }
    return THREADS;
}

// A ring and its words, on a line of its own; NULL without memory.
static struct ring *ring_new(uint64_t words) {
    uint8_t *memory = enif_alloc(sizeof(void *) + RING_LINE + sizeof(struct ring) + words * 8);
    if (!memory) {
        return NULL;
    }
    uintptr_t at =
        ((uintptr_t)memory + sizeof(void *) + RING_LINE - 1) & ~(uintptr_t)(RING_LINE - 1);
    struct ring *ring = (struct ring *)at;
    ((void **)ring)[-1] = memory;
    ring_init(ring, (uint64_t *)(ring + 1), words);
    return ring;
}

static void ring_delete(struct ring *ring) {
    enif_free(((void **)ring)[-1]);
}

// The ring of the thread that calls; NULL: it can have none.
static struct ring *ring_here(struct slot *slot) {
    size_t place = thread_place();
    if (place == THREADS) {
        return NULL;
    }
    struct ring *ring = (struct ring *)(uintptr_t)RING_ACQUIRE(&slot->places[place]);
    if (!ring && (ring = ring_new(slot->ring_words))) {
        RING_RELEASE(&slot->places[place], (uint64_t)(uintptr_t)ring);
    }
    return ring;
}

static void write_record(struct slot *slot, uint64_t generation, union record *r, uint8_t head,
                         uint64_t words) {
    r->of.head = (r->of.head & 0xffffff00) | head | words << RING_COUNT_SHIFT | generation << 48;
    struct ring *ring = ring_here(slot);
    if (ring) {
        ring_put(ring, r->words, words);
    } else {
        atomic_fetch_add(&slot->homeless, 1);
    }
}

// The kind of an event that has no function; 0: of no use here.
static uint8_t plain_kind(ERL_NIF_TERM tag) {
    if (tag == atom.in) {
        return RECORD_IN;
    }
    if (tag == atom.out) {
        return RECORD_OUT;
    }
    if (tag == atom.out_exited) {
        return RECORD_EXITED;
    }
    if (tag == atom.gc_minor_start || tag == atom.gc_major_start) {
        return RECORD_GC_START;
    }
    if (tag == atom.gc_minor_end || tag == atom.gc_major_end) {
        return RECORD_GC_END;
    }
    return 0;
}

// enabled(Tag, State, Tracee). It may run without a process.
static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    uint64_t generation;
    bool on = slot_of(env, argv[1], &generation);
    if (argv[0] == atom.trace_status) {
        return on ? atom.trace : atom.remove;
    }
    bool wanted = argv[0] == atom.seq_trace || plain_kind(argv[0]) != 0;
    return on && wanted ? atom.trace : atom.discard;
}

// enabled_call(Tag, State, Tracee).
static ERL_NIF_TERM enabled_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    uint64_t generation;
    return slot_of(env, argv[1], &generation) ? atom.trace : atom.discard;
}

// Writes an event's function and what it has besides. Returns kind and flags, 0: of no use here.
static uint8_t note_event(ErlNifEnv *env, const ERL_NIF_TERM argv[], union record *r,
                          uint64_t *words) {
    ERL_NIF_TERM tag = argv[0];
    *words = RECORD_END(caller_module);
    if (tag == atom.call) {
        return note_function(env, argv[3], r)
                   ? RECORD_CALL | note_call(env, &atoms, argv[4], r, words)
                   : 0;
    }
    if (tag == atom.return_from && note_function(env, argv[3], r)) {
        r->of.spawned = note_spawned(env, &atoms, argv[4], r);
        *words += r->of.spawned != 0;
        return RECORD_RETURN | (r->of.spawned != 0 ? RECORD_SPAWNED : 0);
    }
    if (tag == atom.return_to) {
        r->of.module = 0;
        return argv[3] == atoms.undefined || note_function(env, argv[3], r) ? RECORD_RETURN_TO : 0;
    }
    if (tag == atom.exception_from) {
        return note_function(env, argv[3], r) ? RECORD_EXCEPTION : 0;
    }
    *words = RECORD_END(module);
    return plain_kind(tag);
}

// trace(Tag, State, Tracee, TraceTerm, Options). Its time is that of its begin, which is after all
// that its process did before. As the system tracer: Tag is seq_trace, and the token's label, any
// term, stands in the tracee's place.
static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    union record r;
    uint64_t generation, words;
    ErlNifPid tracee;
    uint8_t head;
    struct slot *slot = slot_of(env, argv[1], &generation);
    if (!slot) {
        return atom.ok;
    }
    r.of.head = 0;
    r.of.time = now();
    if (argv[0] == atom.seq_trace) {
        head = note_message(env, &atoms, argv[2], argv[3], &r, &words);
    } else if (enif_get_local_pid(env, argv[2], &tracee)) {
        r.of.process = tracee.pid;
        head = note_event(env, argv, &r, &words);
    } else {
        return atom.ok;
    }
    if (head != 0) {
        write_record(slot, generation, &r, head, words);
    }
    return atom.ok;
}

// -- the relay's side -----------------------------------------------------------------------------

// Takes a slot for the one who calls. False: somebody else has it.
static bool slot_take(struct slot *slot) {
    return atomic_exchange(&slot->taken, 1) == 0;
}

static void slot_give(struct slot *slot) {
    RING_RELEASE(&slot->taken, 0);
}

// Takes the slot of a state. NULL: its trace is over, or somebody else has it; *answer says so.
static struct slot *take_slot_of(ErlNifEnv *env, ERL_NIF_TERM state, uint64_t *generation,
                                 ERL_NIF_TERM *answer) {
    struct slot *slot = slot_of(env, state, generation);
    if (slot && !slot_take(slot)) {
        *answer = atom.busy;
        return NULL;
    }
    if (slot && RING_ACQUIRE(&slot->generation) == *generation) {
        return slot;
    }
    if (slot) {
        slot_give(slot);
    }
    *answer = enif_make_badarg(env);
    return NULL;
}

// Reads the options of open. False: they are none.
static bool read_options(ErlNifEnv *env, ERL_NIF_TERM options, uint8_t *flags, uint64_t *bytes) {
    ERL_NIF_TERM value;
    ErlNifUInt64 number = RING_BYTES;
    *flags = 0;
    if (!enif_is_map(env, options)) {
        return false;
    }
    if (enif_get_map_value(env, options, atom.apart, &value)) {
        if (value != atom.yes && value != atom.no) {
            return false;
        }
        *flags = value == atom.yes; // NATIVE_APART
    }
    if (enif_get_map_value(env, options, atom.ring_bytes, &value) &&
        !enif_get_uint64(env, value, &number)) {
        return false;
    }
    *bytes = number;
    return number >= RING_BYTES_LEAST && number <= RING_BYTES_MOST && (number & (number - 1)) == 0;
}

// Makes a free slot that was taken ready for a trace.
static void slot_begin(struct slot *slot, uint8_t flags, uint64_t bytes) {
    slot->flags = flags;
    slot->ring_words = bytes / sizeof(uint64_t);
    slot->messages = slot->bytes = slot->dropped = 0;
    slot->since = now();
    slot->before = slot->latest = moment_now();
    slot->told = INT64_MIN;
    slot->homeless_told = atomic_load(&slot->homeless);
    slot->drain.now = now;
    slot->drain.places = slot->places;
    slot->drain.count = THREADS;
    for (size_t i = 0; i < THREADS; i++) {
        struct ring *ring = (struct ring *)(uintptr_t)RING_ACQUIRE(&slot->places[i]);
        if (ring) {
            ring_skip(ring);
        }
    }
}

// open(Options) -> State | full. Rings that the slot has from earlier traces keep their size.
static ERL_NIF_TERM open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    uint8_t flags;
    uint64_t bytes;
    if (!read_options(env, argv[0], &flags, &bytes)) {
        return enif_make_badarg(env);
    }
    if (atomic_exchange(&opening, 1) != 0) {
        return atom.busy;
    }
    ERL_NIF_TERM state = atom.full;
    for (size_t i = 0; i < SLOTS && state == atom.full; i++) {
        if (RING_ACQUIRE(&slots[i].generation) == 0 && slot_take(&slots[i])) {
            slot_begin(&slots[i], flags, bytes);
            generations++;
            state = enif_make_uint64(env, generations << SLOT_BITS | i);
            RING_RELEASE(&slots[i].generation, generations);
            slot_give(&slots[i]);
        }
    }
    atomic_store(&opening, 0);
    return state;
}

// Who reads: the environment of the call, and the frames made so far.
struct reading {
    ErlNifEnv *env;
    struct slot *slot;
    ERL_NIF_TERM frames[READ_BLOCKS];
    size_t count;
    bool begun;                       // a block
    uint8_t pid[2 + BLOCK_ATOM + 12]; // of who reads, as encoded: it has the node's name
    size_t node_size;
};

static size_t atom_bytes(void *context, uint64_t word, uint8_t *out) {
    const struct reading *reading = context;
    size_t size = note_term(reading->env, (ERL_NIF_TERM)word, out, BLOCK_ATOM);
    if (size == 0) { // no memory
        out[0] = 119;
        out[1] = 0;
        size = 2;
    }
    return size;
}

static uint64_t process_id(void *context, uint64_t word) {
    enum { NUMBERS = 12 };
    const struct reading *reading = context;
    uint8_t pid[2 + BLOCK_ATOM + NUMBERS];
    size_t size = note_term(reading->env, (ERL_NIF_TERM)word, pid, sizeof pid);
    uint64_t id = 0;
    for (size_t i = 0; size > NUMBERS && i < 8; i++) {
        id = id << 8 | pid[size - NUMBERS + i]; // id, then serial, the highest bytes first
    }
    return id >> 32 | id << 32;
}

static void end_frame(struct reading *reading) {
    struct slot *slot = reading->slot;
    size_t size = block_end(&slot->block);
    slot->frame[0] = FRAME_OP_BLOCK;
    for (unsigned i = 1; i < FRAME_HEADER; i++) {
        slot->frame[i] = (uint8_t)(size >> (8 * (FRAME_HEADER - 1 - i)));
    }
    size += FRAME_HEADER;
    uint8_t *bytes = enif_make_new_binary(reading->env, size, &reading->frames[reading->count]);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = slot->frame[i];
    }
    reading->count++;
    reading->begun = false;
    slot->bytes += size;
}

// Adds a record to the block, or to a new one. False: there are blocks enough.
static bool add_record(struct reading *reading, const union record *r) {
    struct slot *slot = reading->slot;
    if (reading->begun && block_add(&slot->block, r)) {
        return true;
    }
    if (reading->begun) {
        end_frame(reading);
    }
    if (reading->count == READ_BLOCKS) {
        return false;
    }
    block_begin(&slot->block, reading->pid + 1, reading->node_size, slot->flags, r->of.time);
    reading->begun = true;
    return block_add(&slot->block, r);
}

// Takes a record, or a loss, from the drain, and has it tell the VM's time. What is handed out in
// order stays so, although a later read knows better how fast the VM's time went.
static bool take_record(void *to, union record *r) {
    struct reading *reading = to;
    struct slot *slot = reading->slot;
    bool loss = record_byte(r, RECORD_KIND) == RECORD_LOST;
    r->of.time = vm_time(slot, r->of.time);
    if (loss) {
        r->of.until = vm_time(slot, r->of.until);
    } else {
        r->of.time = slot->told = r->of.time > slot->told ? r->of.time : slot->told;
    }
    if (!add_record(reading, r)) {
        return false;
    }
    *(loss ? &slot->dropped : &slot->messages) += loss ? r->of.messages : 1;
    return true;
}

// Tells the records of threads without a ring. They may be of any time since the trace began.
static void tell_homeless(struct reading *reading) {
    struct slot *slot = reading->slot;
    uint64_t homeless = atomic_load(&slot->homeless);
    if (homeless == slot->homeless_told) {
        return;
    }
    union record loss;
    loss.of.head = RECORD_LOST;
    loss.of.time = slot->since;
    loss.of.until = now();
    loss.of.messages = homeless - slot->homeless_told;
    slot->homeless_told = homeless;
    take_record(reading, &loss);
}

// read(State) -> {[Frame], More}
static ERL_NIF_TERM read(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    enum { NUMBERS = 12 };
    uint64_t generation;
    ERL_NIF_TERM answer;
    struct slot *slot = take_slot_of(env, argv[0], &generation, &answer);
    if (!slot) {
        return answer;
    }
    struct reading reading;
    ErlNifPid self;
    reading.env = env;
    reading.slot = slot;
    reading.count = 0;
    reading.begun = false;
    enif_self(env, &self);
    size_t size = note_term(env, enif_make_pid(env, &self), reading.pid, sizeof reading.pid);
    if (size <= 1 + NUMBERS) { // no memory
        slot_give(slot);
        return enif_make_badarg(env);
    }
    reading.node_size = size - 1 - NUMBERS;
    slot->before = slot->latest;
    slot->latest = moment_now();
    slot->block.names = (struct block_names){atom_bytes, process_id, &reading};
    slot->block.bytes = slot->frame + FRAME_HEADER;
    tell_homeless(&reading);
    bool more = drain_run(&slot->drain, generation & 0xffff, take_record, &reading);
    if (reading.begun) {
        end_frame(&reading);
    }
    slot_give(slot);
    enif_consume_timeslice(env, 1 + 99 * (int)reading.count / READ_BLOCKS);
    return enif_make_tuple2(env,
                            enif_make_list_from_array(env, reading.frames, (unsigned)reading.count),
                            more ? atom.yes : atom.no);
}

// totals(State) -> {Messages, Bytes, Dropped}
static ERL_NIF_TERM totals(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    uint64_t generation;
    ERL_NIF_TERM answer;
    struct slot *slot = take_slot_of(env, argv[0], &generation, &answer);
    if (!slot) {
        return answer;
    }
    answer =
        enif_make_tuple3(env, enif_make_uint64(env, slot->messages),
                         enif_make_uint64(env, slot->bytes), enif_make_uint64(env, slot->dropped));
    slot_give(slot);
    return answer;
}

// close(State) -> ok
static ERL_NIF_TERM close(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    uint64_t generation;
    struct slot *slot = slot_of(env, argv[0], &generation);
    if (!slot || !atomic_compare_exchange_strong(&slot->generation, &generation, 0)) {
        return enif_make_badarg(env);
    }
    return atom.ok;
}

// -- the library ----------------------------------------------------------------------------------

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info) {
    static const struct {
        ERL_NIF_TERM *word;
        const char *text;
    } all[] = {
        {&atom.trace, "trace"},
        {&atom.discard, "discard"},
        {&atom.remove, "remove"},
        {&atom.ok, "ok"},
        {&atom.busy, "busy"},
        {&atom.full, "full"},
        {&atom.yes, "true"},
        {&atom.no, "false"},
        {&atom.trace_status, "trace_status"},
        {&atom.apart, "apart"},
        {&atom.ring_bytes, "ring_bytes"},
        {&atom.seq_trace, "seq_trace"},
        {&atom.call, "call"},
        {&atom.return_from, "return_from"},
        {&atom.exception_from, "exception_from"},
        {&atom.return_to, "return_to"},
        {&atom.in, "in"},
        {&atom.out, "out"},
        {&atom.out_exited, "out_exited"},
        {&atom.gc_minor_start, "gc_minor_start"},
        {&atom.gc_major_start, "gc_major_start"},
        {&atom.gc_minor_end, "gc_minor_end"},
        {&atom.gc_major_end, "gc_major_end"},
    };
    (void)priv;
    (void)info;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i].word = enif_make_atom(env, all[i].text);
    }
    atoms = note_atoms(env);
    // A process may still have a state of the library's last load: none of this one is the same.
    generations = ((uint64_t)now() >> 10 & 0xffffffffff) + 1;
    return 0;
}

// A new version of the module cannot take over rings that threads write into.
static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info) {
    (void)env;
    (void)priv;
    (void)old;
    (void)info;
    return -1;
}

// Leaves everything as at first, as not every C library forgets it when it is unloaded (musl).
static void unload(ErlNifEnv *env, void *priv) {
    (void)env;
    (void)priv;
    for (size_t i = 0; i < SLOTS; i++) {
        RING_RELEASE(&slots[i].generation, 0);
        for (size_t k = 0; k < THREADS; k++) {
            struct ring *ring = (struct ring *)(uintptr_t)RING_ACQUIRE(&slots[i].places[k]);
            if (ring) {
                ring_delete(ring);
            }
            RING_RELEASE(&slots[i].places[k], 0);
        }
    }
}

static ErlNifFunc functions[] = {
    {"enabled", 3, enabled, 0}, {"enabled_call", 3, enabled_call, 0},
    {"trace", 5, trace, 0},     {"open", 1, open, 0},
    {"read", 1, read, 0},       {"totals", 1, totals, 0},
    {"close", 1, close, 0},
};

ERL_NIF_INIT(kprof_native, functions, load, NULL, upgrade, unload)
