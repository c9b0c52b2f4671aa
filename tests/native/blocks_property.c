// SPDX-License-Identifier: Apache-2.0
// Random records through rings, drain and blocks (shim/c_src), read by the collector's reader
// (model/message/native.h): each comes out once, as it went in, and every block is within its size.
//   blocks_property [SEED [RECORDS]]
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "drain.h"

#include "base/hash.h"
#include "model/message/message_learned.h"
#include "model/message/native.h"

_Static_assert((int)RECORD_CALL == (int)NATIVE_CALL && (int)RECORD_RETURN == (int)NATIVE_RETURN &&
                   (int)RECORD_EXCEPTION == (int)NATIVE_EXCEPTION &&
                   (int)RECORD_RETURN_TO == (int)NATIVE_RETURN_TO &&
                   (int)RECORD_GC_START == (int)NATIVE_GC_START &&
                   (int)RECORD_GC_END == (int)NATIVE_GC_END && (int)RECORD_OUT == (int)NATIVE_OUT &&
                   (int)RECORD_IN == (int)NATIVE_IN && (int)RECORD_EXITED == (int)NATIVE_EXITED &&
                   (int)RECORD_SENT == (int)NATIVE_SENT && (int)RECORD_TAKEN == (int)NATIVE_TAKEN &&
                   (int)RECORD_LOST == (int)NATIVE_LOST,
               "kinds");
_Static_assert((int)RECORD_TOKEN == (int)NATIVE_TOKEN && (int)RECORD_CALLER == (int)NATIVE_CALLER &&
                   (int)RECORD_REST == (int)NATIVE_REST && (int)RECORD_TERM == (int)NATIVE_TERM &&
                   (int)RECORD_SPAWNED == (int)NATIVE_SPAWNED &&
                   (int)BLOCK_FUNCTIONS <= (int)NATIVE_FUNCTIONS &&
                   (int)BLOCK_PROCESSES <= (int)NATIVE_PROCESSES,
               "flags and sizes");

enum { RINGS = 5, RING_WORDS = 4096, KEPT = 1 << 16 };

static uint64_t seed;

static uint64_t any(uint64_t below) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (seed >> 33) % below;
}

// Numbers of every size.
static uint64_t any_number(void) {
    uint64_t number = (any(1ULL << 31) << 40) ^ (any(1ULL << 31) << 20) ^ any(1ULL << 31);
    return number >> any(64);
}

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("line %d: not so: %s\n", __LINE__, #what);                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

// -- what words mean ------------------------------------------------------------------------------

// Atoms of 1 to 255 characters of 1 or 4 bytes, by their word.
static size_t atom_text(uint64_t word, uint8_t *text) {
    size_t size = word % 50 == 0 ? 1020 : word % 7 == 0 ? 255 : 1 + word % 20;
    for (size_t i = 0; i < size; i++) {
        text[i] = (uint8_t)('a' + (word >> i % 8) % 26);
    }
    for (size_t i = 0; size == 1020 && i < size; i += 4) {
        uint8_t clef[] = {0xf0, 0x9d, 0x84, (uint8_t)(0x80 + (word >> i % 8) % 32)};
        memcpy(text + i, clef, sizeof clef);
    }
    return size;
}

static size_t atom_of(void *context, uint64_t word, uint8_t *out) {
    (void)context;
    uint8_t text[BLOCK_ATOM];
    size_t size = atom_text(word, text), lead = size > 255 ? 3 : 2;
    out[0] = size > 255 ? TERM_ATOM_UTF8 : TERM_SMALL_ATOM_UTF8;
    out[1] = (uint8_t)(size > 255 ? size >> 8 : size);
    out[lead - 1] = (uint8_t)size;
    memcpy(out + lead, text, size);
    return lead + size;
}

static uint64_t process_of(void *context, uint64_t word) {
    (void)context;
    return word * 3 + 1;
}

// What stands for a function in a message.
static uint32_t target_of(uint64_t module, uint64_t function, uint8_t arity) {
    uint8_t name[2 * BLOCK_ATOM];
    size_t size = atom_of(NULL, module, name);
    size += atom_of(NULL, function, name + size);
    return message_target(slice_of(name, size), arity);
}

// -- records --------------------------------------------------------------------------------------

static struct ring rings[RINGS];
static uint64_t words[RINGS][RING_WORDS];
static ring_atomic places[RINGS];
static int64_t clock_now;
static uint64_t put_count, dropped;
static uint64_t strangers_dropped; // of an earlier trace, told as this one's
// Where names begin, and how many there are at a time: a few, so that blocks get full of bytes, or
// many.
static uint64_t base, wide = 40;

// The records that are under way, by the time of each, which no other one has.
static union record kept[KEPT];
static size_t first_kept, kept_count;

static int64_t now(void) {
    return clock_now;
}

// Appends a term to the tail as its part, or as more of it.
static void tail_add(union record *r, unsigned part, const uint8_t *term, size_t size) {
    size_t used = record_length(r, 0) + record_length(r, 1) + record_length(r, 2);
    memcpy((uint8_t *)r->of.tail + used, term, size);
    r->of.lengths += (uint64_t)size << (16 * part);
}

static size_t binary_term(uint8_t *out, size_t size) {
    uint8_t head[] = {TERM_BINARY, 0, 0, (uint8_t)(size >> 8), (uint8_t)size};
    memcpy(out, head, sizeof head);
    for (size_t i = 0; i < size; i++) {
        out[sizeof head + i] = (uint8_t)any(256);
    }
    return sizeof head + size;
}

static void any_token(union record *r, uint8_t *head) {
    uint8_t bytes[RECORD_FROM_BYTES];
    *head |= RECORD_TOKEN;
    r->of.label = any(3) ? 1000 + any(10) : any_number();
    r->of.serial = any_number();
    r->of.previous = any_number();
    if (any(10) == 0) {
        *head |= RECORD_TERM;
        tail_add(r, 0, bytes, binary_term(bytes, any(20) ? any(20) : RECORD_LABEL_BYTES - 5));
    }
    r->of.from = any(4) ? 1 + any(wide * wide) : 0;
    if (r->of.from == 0 && any(wide) > 0) {
        bytes[0] = TERM_NEW_PID;
        size_t size = 1 + atom_of(NULL, any(2 * wide), bytes + 1);
        for (size_t i = 0; i < 12; i++) {
            bytes[size++] = (uint8_t)(i % 4 == 3 ? any(4) : 0);
        }
        tail_add(r, 1, bytes, size);
    }
}

static void any_rest(union record *r) {
    uint8_t bytes[RECORD_REST_BYTES];
    size_t elements = any(5), room = RECORD_REST_BYTES, size;
    for (size_t i = 0; i < elements; i++) {
        size = binary_term(bytes, any(30) ? any(30) : (room - 8) / 2);
        tail_add(r, 2, bytes, size);
        room -= size;
    }
    r->of.head |= elements << (8 * RECORD_ELEMENTS);
}

// Makes a record, and returns its words.
static uint64_t any_record(union record *r) {
    static const uint8_t kinds[] = {
        RECORD_CALL,      RECORD_CALL,      RECORD_RETURN,   RECORD_RETURN, RECORD_CALL,
        RECORD_EXCEPTION, RECORD_RETURN_TO, RECORD_GC_START, RECORD_GC_END, RECORD_OUT,
        RECORD_IN,        RECORD_EXITED,    RECORD_TAKEN,    RECORD_SENT};
    uint8_t head = kinds[any(sizeof kinds)];
    uint64_t count = RECORD_END(caller_module);
    memset(&r->of, 0, offsetof(struct record_fields, tail));
    r->of.time = clock_now;
    r->of.process = base + 1 + any(wide * wide);
    r->of.module = base + 1 + any(wide);
    r->of.function = base + 1 + any(9);
    r->of.head = any(any(wide) ? 3 : 256) << (8 * RECORD_ARITY);
    if (head == RECORD_SENT || head == RECORD_TAKEN) {
        any_token(r, &head);
        count = RECORD_END(tail) + (record_length(r, 0) + record_length(r, 1) + 7) / 8;
    } else if (head >= RECORD_GC_START) {
        count = RECORD_END(module);
    } else if (head == RECORD_RETURN_TO && any(4) == 0) {
        r->of.module = 0;
    } else if (head == RECORD_RETURN && any(4) == 0) {
        head |= RECORD_SPAWNED;
        r->of.spawned = 1 + any(500);
        count = RECORD_END(caller_function);
    } else if (head == RECORD_CALL) {
        if (any(4)) {
            any_token(r, &head);
        }
        if ((head & RECORD_TOKEN) && any(3) == 0) {
            head |= RECORD_CALLER;
            r->of.caller_module = any(4) ? base + 1 + any(wide) : 0;
            r->of.caller_function = base + 1 + any(9);
            r->of.head |= any(any(wide) ? 3 : 256) << (8 * RECORD_CALLER_ARITY);
        }
        if ((head & RECORD_TOKEN) && any(3) == 0) {
            head |= RECORD_REST;
            any_rest(r);
        }
        size_t tail = record_length(r, 0) + record_length(r, 1) + record_length(r, 2);
        count = RECORD_END(tail) + (tail + 7) / 8;
    }
    r->of.head |= head | count << RING_COUNT_SHIFT | (uint64_t)7 << 48;
    return count;
}

static void put_any(void) {
    union record *r = &kept[(first_kept + kept_count) % KEPT];
    clock_now += (int64_t)(any(50) ? 1 + any(2000) : 1 + any_number() % 1000000000000);
    if (any(6000) == 0) {
        base = any(200) * 50;
        wide = any(3) == 0 ? 40 : 2;
    }
    uint64_t count = any_record(r);
    CHECK(count <= RECORD_WORDS && kept_count < KEPT);
    if (any(40) == 0) { // of an earlier trace
        r->of.head ^= (uint64_t)1 << 48;
        strangers_dropped += !ring_put(&rings[any(RINGS)], r->words, count);
        return;
    }
    put_count++;
    if (ring_put(&rings[any(RINGS)], r->words, count)) {
        kept_count++;
    } else {
        dropped++;
    }
}

// -- reading --------------------------------------------------------------------------------------

static struct native_reader *reader;
static struct block block;
static uint8_t bytes[BLOCK_BYTES];
static bool begun;
static unsigned blocks_left; // before the drain is told that there is no room
static uint64_t read_count, told, blocks, most;
enum { LOSSES = 256 };
static union record losses[LOSSES]; // that are in the block
static uint64_t added_losses, read_losses;

static bool is_part(struct slice told_bytes, const union record *r, unsigned part) {
    size_t at = 0;
    for (unsigned i = 0; i < part; i++) {
        at += record_length(r, i);
    }
    return told_bytes.len == record_length(r, part) &&
           memcmp(told_bytes.data, (const uint8_t *)r->of.tail + at, told_bytes.len) == 0;
}

static void check_from(const struct message *m, const union record *r) {
    if (r->of.from != 0) {
        CHECK(m->from == process_of(NULL, r->of.from));
    } else if (record_length(r, 1) > 0) {
        struct cursor c =
            cursor_of((const uint8_t *)r->of.tail + record_length(r, 0), record_length(r, 1));
        c.at++;
        struct slice node = term_atom(&c).text;
        uint64_t id = cursor_u32(&c), serial = cursor_u32(&c);
        CHECK(!c.failed && m->from == message_process(node, id | serial << 32));
    } else {
        CHECK(m->from == 0);
    }
}

static void check_token(const struct message *m, const union record *r, uint8_t head) {
    CHECK(m->has_token);
    uint64_t label = head & RECORD_TERM
                         ? hash_bytes(slice_of((const uint8_t *)r->of.tail, record_length(r, 0)))
                         : hash_mix(r->of.label);
    CHECK(m->token == label);
    uint64_t last = MESSAGE_LAST_SERIAL;
    CHECK(m->serial == (r->of.serial < last ? r->of.serial : last));
    CHECK(m->previous == (r->of.previous < last ? r->of.previous : last));
    check_from(m, r);
}

static void check_call(const struct message *m, const union record *r, uint8_t head) {
    if (!(head & RECORD_TOKEN)) {
        CHECK(!m->has_token);
        return;
    }
    check_token(m, r, head);
    if (head & RECORD_CALLER) {
        uint8_t arity = record_byte(r, RECORD_CALLER_ARITY);
        CHECK(m->caller == (r->of.caller_module == 0
                                ? 2
                                : target_of(r->of.caller_module, r->of.caller_function, arity)));
    }
    if (!(head & RECORD_REST)) {
        CHECK(m->note_kind == NOTE_IDENTITY && m->note.len == 11);
    } else if (record_byte(r, RECORD_ELEMENTS) == 1) {
        CHECK(m->note_kind == NOTE_IDENTITY && is_part(m->note, r, 2));
    } else if (record_byte(r, RECORD_ELEMENTS) == 0) {
        CHECK(m->note_kind == NOTE_NONE);
    }
}

static void check_message(const struct message *m, const union record *r) {
    static const uint8_t kinds[] = {0,
                                    0,
                                    0,
                                    MESSAGE_CALL,
                                    MESSAGE_RETURN,
                                    MESSAGE_EXCEPTION,
                                    MESSAGE_RETURN_TO,
                                    MESSAGE_GC_START,
                                    MESSAGE_GC_END,
                                    MESSAGE_OUT,
                                    MESSAGE_IN,
                                    MESSAGE_EXITED,
                                    MESSAGE_SENT,
                                    MESSAGE_TAKEN};
    uint8_t head = record_byte(r, RECORD_KIND), kind = head & 0x0f;
    uint8_t arity = record_byte(r, RECORD_ARITY);
    CHECK(m->kind == (enum message_kind)kinds[kind]);
    CHECK(m->time == r->of.time && m->clock == MESSAGE_STRICT);
    CHECK(m->pid == process_of(NULL, r->of.process));
    if (kind == RECORD_RETURN_TO) {
        CHECK(m->target ==
              (r->of.module == 0 ? 2 : target_of(r->of.module, r->of.function, arity)));
    } else if (kind < RECORD_RETURN_TO) {
        CHECK(m->arity == arity && m->head != NULL);
        CHECK(m->target == target_of(r->of.module, r->of.function, arity));
    }
    if (kind == RECORD_RETURN && (head & RECORD_SPAWNED)) {
        CHECK(m->note_kind == NOTE_PROCESS && m->spawned == process_of(NULL, r->of.spawned));
    }
    if (kind == RECORD_CALL) {
        check_call(m, r, head);
    } else if (kind == RECORD_SENT || kind == RECORD_TAKEN) {
        check_token(m, r, head);
    }
}

static void end_block(void) {
    size_t size = block_end(&block);
    struct message m;
    struct native_loss loss;
    enum native_step step;
    CHECK(size <= BLOCK_BYTES);
    most = size > most ? size : most;
    uint8_t *exact = malloc(size); // a reader, or writer, past its end is found
    CHECK(exact != NULL);
    memcpy(exact, bytes, size);
    CHECK(native_begin(reader, slice_of(exact, size)));
    while ((step = native_next(reader, &m, &loss)) != NATIVE_IS_OVER) {
        CHECK(step != NATIVE_IS_BAD);
        if (step == NATIVE_IS_LOSS) {
            const struct record_fields *of = &losses[read_losses++ % LOSSES].of;
            told += loss.messages;
            CHECK(loss.time == of->time && loss.until == of->until);
            CHECK(loss.messages == of->messages && loss.clock == MESSAGE_STRICT);
            continue;
        }
        CHECK(kept_count > 0);
        check_message(&m, &kept[first_kept]); // all of them have been put in order of time
        first_kept = (first_kept + 1) % KEPT;
        kept_count--;
        read_count++;
    }
    free(exact);
    blocks++;
    begun = false;
}

static bool add(const union record *r) {
    static const uint8_t node[] = {TERM_SMALL_ATOM_UTF8, 3, 'a', '@', 'b'};
    if (begun && block_add(&block, r)) {
        return true;
    }
    if (begun) {
        end_block();
    }
    if (blocks_left == 0) {
        return false;
    }
    blocks_left--;
    block_begin(&block, node, sizeof node, NATIVE_APART, r->of.time);
    begun = true;
    CHECK(block_add(&block, r));
    return true;
}

static bool take(void *to, union record *r) {
    (void)to;
    if (!add(r)) {
        return false;
    }
    if (record_byte(r, RECORD_KIND) == RECORD_LOST) {
        losses[added_losses++ % LOSSES].of = (struct record_fields){
            .time = r->of.time, .until = r->of.until, .messages = r->of.messages};
        CHECK(added_losses - read_losses <= LOSSES);
    }
    return true;
}

int main(int argc, char **argv) {
    static struct drain drain;
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t wanted = argc > 2 ? strtoull(argv[2], NULL, 10) : 200000;
    reader = malloc(sizeof *reader);
    CHECK(reader != NULL);
    block.bytes = bytes;
    block.names = (struct block_names){atom_of, process_of, NULL};
    drain = (struct drain){.now = now, .places = places, .count = RINGS};
    for (size_t i = 0; i < RINGS; i++) {
        ring_init(&rings[i], words[i], RING_WORDS);
        RING_RELEASE(&places[i], (uintptr_t)&rings[i]);
    }
    while (put_count < wanted || kept_count > 0 || told < dropped + strangers_dropped) {
        for (uint64_t n = put_count < wanted ? any(any(20) ? 1000 : 9000) : 0; n > 0; n--) {
            put_any();
        }
        clock_now++;
        blocks_left = 1 + (unsigned)any(3);
        drain_run(&drain, 7, take, NULL);
        if (begun) {
            end_block();
        }
    }
    CHECK(most > BLOCK_BYTES - 2 * BLOCK_RECORD); // some were ended by their size
    CHECK(dropped > 0 && told == dropped + strangers_dropped && read_count + dropped == put_count);
    printf("%" PRIu64 " records read, %" PRIu64 " told as lost, %" PRIu64
           " blocks of at most %" PRIu64 " bytes\n",
           read_count, told, blocks, most);
    free(reader);
    return 0;
}
