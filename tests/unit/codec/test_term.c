// SPDX-License-Identifier: Apache-2.0
#include "codec/term.h"

#include "captures.h"
#include "codec/frame.h"
#include "unit.h"

// -- the walk -------------------------------------------------------------------------------------

// Calls what with every term of every capture (without its 131), on a guard page.
static size_t each_term(void (*what)(struct slice term, struct guarded *scratch)) {
    struct guarded g = guarded_make(256 * 1024), scratch = guarded_make(256 * 1024);
    size_t terms = 0;
    for (size_t i = 0; i < CAPTURES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.cap", captures[i]);
        struct slice file = data_file(name), rest = file;
        struct frame frame = {0};
        for (long n; rest.len > 0; rest = slice_of(rest.data + n, rest.len - (size_t)n)) {
            n = frame_next(rest, &frame);
            assert_true(n > 0);
            assert_int_equal(frame.body.data[0], TERM_VERSION);
            what(guarded_copy(&g, frame.body.data + 1, frame.body.len - 1), &scratch);
            terms++;
        }
        free((void *)file.data);
    }
    guarded_free(&g);
    guarded_free(&scratch);
    return terms;
}

static void expect_whole(struct slice term, struct guarded *scratch) {
    (void)scratch;
    struct cursor c = cursor_of(term.data, term.len);
    struct slice taken = term_take(&c);
    assert_false(c.failed);
    assert_int_equal(cursor_left(&c), 0);
    assert_ptr_equal(taken.data, term.data);
    assert_int_equal(taken.len, term.len);
}

static void expect_truncations_fail(struct slice term, struct guarded *scratch) {
    // every length of the short ones; of long ones (one has 130 KB) both ends and some between
    for (size_t len = 0; len < term.len; len += len < 600 || len + 600 > term.len ? 1 : 997) {
        struct slice cut = guarded_copy(scratch, term.data, len);
        struct cursor c = cursor_of(cut.data, cut.len);
        assert_int_equal(term_take(&c).len, 0);
        assert_true(c.failed);
    }
}

static void walks_every_term_of_every_capture(void **state) {
    (void)state;
    assert_int_equal(each_term(expect_whole), 22 + 18 + 125 + 101 + 14 + 8 + 20 + 44 + 2000);
}

static void every_truncation_fails(void **state) {
    (void)state;
    each_term(expect_truncations_fail);
}

// Each captured message is a tuple of the arity and with the kind that Erlang found.
static const char *expected_line;

static void expect_kind(struct slice term, struct guarded *scratch) {
    (void)scratch;
    struct cursor c = cursor_of(term.data, term.len);
    uint32_t arity = term_tuple(&c);
    struct term_atom atom = term_atom(&c);
    if (!slice_is(atom.text, "seq_trace")) {
        term_pid(&c);
        atom = term_atom(&c);
    }
    assert_false(c.failed);
    char line[128];
    snprintf(line, sizeof line, "term %zu %u %.*s\n", term.len + 1, arity, (int)atom.text.len,
             (const char *)atom.text.data);
    assert_memory_equal(expected_line, line, strlen(line));
    expected_line += strlen(line);
}

static void reads_what_erlang_reads(void **state) {
    (void)state;
    static char all[65536];
    size_t len = 0;
    for (size_t i = 0; i < CAPTURES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.frames", captures[i]);
        struct slice file = data_file(name);
        assert_true(len + file.len < sizeof all);
        memcpy(all + len, file.data, file.len);
        len += file.len;
        free((void *)file.data);
    }
    all[len] = 0;
    expected_line = all;
    each_term(expect_kind);
    assert_string_equal(expected_line, "");
}

static void skip_fails(struct guarded *g, const void *bytes, size_t len) {
    struct slice s = guarded_copy(g, bytes, len);
    struct cursor c = cursor_of(s.data, s.len);
    term_skip(&c);
    assert_true(c.failed);
}

static void skip_takes(struct guarded *g, const void *bytes, size_t len, size_t takes) {
    struct slice s = guarded_copy(g, bytes, len);
    struct cursor c = cursor_of(s.data, s.len);
    term_skip(&c);
    assert_false(c.failed);
    assert_int_equal(s.len - cursor_left(&c), takes);
}

#define BYTES(text) text, sizeof(text) - 1

static void hostile_counts(void **state) {
    (void)state;
    struct guarded g = guarded_make(64);
    static const uint8_t counted[] = {TERM_LARGE_TUPLE, TERM_LIST,      TERM_MAP,    TERM_BINARY,
                                      TERM_BIT_BINARY,  TERM_LARGE_BIG, TERM_NEW_FUN};
    for (size_t i = 0; i < sizeof counted; i++) {
        uint8_t bytes[12] = {counted[i], 0xff,     0xff,     0xff,     0xff,    TERM_NIL,
                             TERM_NIL,   TERM_NIL, TERM_NIL, TERM_NIL, TERM_NIL};
        skip_fails(&g, bytes, sizeof bytes);
        bytes[1] = 0x80; // negative, for those who read signed
        bytes[2] = bytes[3] = bytes[4] = 0;
        skip_fails(&g, bytes, sizeof bytes);
        skip_fails(&g, bytes, 5);
    }
    skip_fails(&g, BYTES("\x72\xff\xff\x77\x01x\0")); // a reference of 65535 words
    skip_fails(&g, BYTES("\x5a\xff\xff\x77\x01x\0"));
    skip_fails(&g, BYTES("\x70\0\0\0\3")); // a fun smaller than its size
    skip_takes(&g, BYTES("\x70\0\0\0\4"), 5);
    skip_fails(&g, BYTES("\x70\0\0\0\5"));
    guarded_free(&g);
}

static void every_tag(void **state) {
    (void)state;
    struct guarded g = guarded_make(64);
    skip_takes(&g, BYTES("\x61\x05rest"), 2);
    skip_takes(&g, BYTES("\x62\0\0\0\1rest"), 5);
    skip_takes(&g, BYTES("\x46\0\0\0\0\0\0\0\0rest"), 9);
    skip_takes(&g,
               BYTES("\x63"
                     "1.00000000000000000000e+00\0\0\0\0\0rest"),
               32);
    skip_takes(&g, BYTES("\x64\0\2okrest"), 5);
    skip_takes(&g, BYTES("\x73\2okrest"), 4);
    skip_takes(&g, BYTES("\x76\0\2okrest"), 5);
    skip_takes(&g, BYTES("\x77\2okrest"), 4);
    skip_takes(&g, BYTES("\x6b\0\2okrest"), 5);
    skip_takes(&g, BYTES("\x6d\0\0\0\2okrest"), 7);
    skip_takes(&g, BYTES("\x4d\0\0\0\2\3okrest"), 8);
    skip_takes(&g, BYTES("\x6e\2\0\1\2rest"), 5);
    skip_takes(&g, BYTES("\x6f\0\0\0\2\0\1\2rest"), 8);
    skip_takes(&g, BYTES("\x68\2\x6a\x6arest"), 4);
    skip_takes(&g, BYTES("\x68\0rest"), 2);
    skip_takes(&g, BYTES("\x69\0\0\0\2\x6a\x6arest"), 7);
    skip_takes(&g, BYTES("\x6c\0\0\0\2\x6a\x6a\x6arest"), 8);
    skip_takes(&g, BYTES("\x74\0\0\0\1\x6a\x6arest"), 7);
    skip_takes(&g, BYTES("\x71\x77\1m\x77\1f\x61\1rest"), 9);
    skip_takes(&g, BYTES("\x67\x77\1n\0\0\0\1\0\0\0\2\3rest"), 13);
    skip_takes(&g, BYTES("\x58\x77\1n\0\0\0\1\0\0\0\2\0\0\0\3rest"), 16);
    skip_takes(&g, BYTES("\x66\x77\1n\0\0\0\1\3rest"), 9);
    skip_takes(&g, BYTES("\x59\x77\1n\0\0\0\1\0\0\0\3rest"), 12);
    skip_takes(&g, BYTES("\x78\x77\1n\0\0\0\0\0\0\0\1\0\0\0\3rest"), 16);
    skip_takes(&g, BYTES("\x65\x77\1n\0\0\0\1\3rest"), 9);
    skip_takes(&g, BYTES("\x72\0\2\x77\1n\3\0\0\0\1\0\0\0\2rest"), 15);
    skip_takes(&g, BYTES("\x5a\0\2\x77\1n\0\0\0\3\0\0\0\1\0\0\0\2rest"), 18);
    // the node of a pid must be an atom
    skip_fails(&g, BYTES("\x58\x61\1\0\0\0\1\0\0\0\2\0\0\0\3rest"));
    // and tags that are none, among them the version (131), compression (80), atom cache (82),
    // local (121)
    uint8_t bytes[40] = {0};
    unsigned known = 0;
    for (unsigned tag = 0; tag < 256; tag++) {
        bytes[0] = (uint8_t)tag;
        struct slice s = guarded_copy(&g, bytes, sizeof bytes);
        struct cursor c = cursor_of(s.data, s.len);
        term_skip(&c);
        known += !c.failed;
        assert_false(
            (tag == 131 || tag == 80 || tag == 82 || tag == 121 || tag == 0 || tag == 117) &&
            !c.failed);
    }
    // of all tags these 17 are whole when zeros follow; the rest needs a node, a tail, or three
    // parts
    assert_int_equal(known, 17);
    guarded_free(&g);
}

// A million lists, one in the other, and the same with tuples and maps: the walk uses neither stack
// nor memory for depth.
static void deep_nesting(void **state) {
    (void)state;
    enum { DEPTH = 1000000 };
    uint8_t *bytes = malloc((size_t)DEPTH * 6 + 8);
    assert_non_null(bytes);
    size_t n = 0;
    for (int i = 0; i < DEPTH; i++) {
        memcpy(bytes + n, "\x6c\0\0\0\1", 5);
        n += 5;
    }
    memset(bytes + n, TERM_NIL, DEPTH + 1); // the innermost element, and every list's tail
    n += DEPTH + 1;
    fail_alloc_at(0);
    struct cursor c = cursor_of(bytes, n);
    term_skip(&c);
    assert_false(c.failed);
    assert_int_equal(cursor_left(&c), 0);
    c = cursor_of(bytes, n - 1);
    term_skip(&c);
    assert_true(c.failed);
    char out[64];
    // never given to the printer
    assert_int_equal(term_text(slice_of(bytes, n), out, sizeof out), 4);
    assert_memory_equal(out, "term", 4);
    for (int i = 0; i < DEPTH; i++) {
        memcpy(bytes + 2 * (size_t)i, "\x68\1", 2);
    }
    bytes[2 * (size_t)DEPTH] = TERM_NIL;
    c = cursor_of(bytes, 2 * (size_t)DEPTH + 1);
    term_skip(&c);
    assert_false(c.failed);
    assert_int_equal(cursor_left(&c), 0);
    assert_int_equal(term_text(slice_of(bytes, 2 * (size_t)DEPTH + 1), out, sizeof out), 4);
    fail_alloc_at(-1);
    free(bytes);
}

// -- readers --------------------------------------------------------------------------------------

static void integers(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        bool good;
        int64_t value;
    } cases[] = {
        {BYTES("\x61\xff"), true, 255},
        {BYTES("\x62\xff\xff\xff\xff"), true, -1},
        {BYTES("\x62\x7f\xff\xff\xff"), true, INT32_MAX},
        {BYTES("\x62\x80\0\0\0"), true, INT32_MIN},
        {BYTES("\x6e\0\0"), true, 0},
        {BYTES("\x6e\1\1\5"), true, -5},
        {BYTES("\x6e\5\0\0\0\0\0\1"), true, 1LL << 32},
        {BYTES("\x6e\x08\0\xff\xff\xff\xff\xff\xff\xff\x7f"), true, INT64_MAX},
        {BYTES("\x6e\x08\1\0\0\0\0\0\0\0\x80"), true, INT64_MIN},
        {BYTES("\x6e\x08\0\0\0\0\0\0\0\0\x80"), false, 0},
        {BYTES("\x6e\x08\1\1\0\0\0\0\0\0\x80"), false, 0},
        {BYTES("\x6e\x08\0\xff\xff\xff\xff\xff\xff\xff\xff"), false, 0},
        {BYTES("\x6e\x09\0\1\0\0\0\0\0\0\0\1"), false, 0},
        {BYTES("\x6e\x09\0\1\0\0\0\0\0\0\0\0"), true, 1},
        {BYTES("\x6e\x08\0\1\0\0\0\0\0\0"), false, 0},
        {BYTES("\x6a"), false, 0},
        {BYTES(""), false, 0},
    };
    struct guarded g = guarded_make(16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slice s = guarded_copy(&g, cases[i].bytes, cases[i].len);
        struct cursor c = cursor_of(s.data, s.len);
        int64_t value = term_integer(&c);
        assert_int_equal(!c.failed, cases[i].good);
        assert_int_equal(value, cases[i].value);
        assert_int_equal(cursor_left(&c), 0);
    }
    guarded_free(&g);
}

static void atoms_pids_tuples_lists(void **state) {
    (void)state;
    struct cursor c = cursor_of("\x64\0\2ok\x73\1a\x76\0\1b\x77\0\x61", 15);
    struct term_atom a = term_atom(&c);
    assert_true(slice_is(a.text, "ok") && a.latin1);
    a = term_atom(&c);
    assert_true(slice_is(a.text, "a") && a.latin1);
    a = term_atom(&c);
    assert_true(slice_is(a.text, "b") && !a.latin1);
    a = term_atom(&c);
    assert_true(a.text.len == 0 && !a.latin1 && !c.failed);
    term_atom(&c);
    assert_true(c.failed);

    c = cursor_of("\x58\x77\1n\0\0\1\2\0\0\0\3\0\0\0\4\x67\x77\1m\0\0\1\2\0\0\0\3\5", 29);
    struct term_pid p = term_pid(&c);
    assert_true(slice_is(p.node.text, "n") && p.id == 0x102 && p.serial == 3 && p.creation == 4);
    p = term_pid(&c);
    assert_true(slice_is(p.node.text, "m") && p.id == 0x102 && p.serial == 3 && p.creation == 5);
    assert_true(!c.failed && cursor_left(&c) == 0);
    c = cursor_of("\x77\1n", 3);
    term_pid(&c);
    assert_true(c.failed);

    c = cursor_of("\x68\3\x69\0\1\0\2", 7);
    assert_int_equal(term_tuple(&c), 3);
    assert_int_equal(term_tuple(&c), 65538);
    assert_int_equal(term_tuple(&c), 0);
    assert_true(c.failed);

    bool tail;
    struct slice bytes;
    c = cursor_of("\x6a\x6b\0\2hi\x6c\0\0\0\7\x61", 12);
    assert_int_equal(term_list(&c, &tail, &bytes), 0);
    assert_true(!tail && bytes.len == 0);
    assert_int_equal(term_list(&c, &tail, &bytes), 2);
    assert_true(!tail && slice_is(bytes, "hi"));
    assert_int_equal(term_list(&c, &tail, &bytes), 7);
    assert_true(tail && bytes.len == 0 && !c.failed);
    term_list(&c, &tail, &bytes);
    assert_true(c.failed && !tail);
    c = cursor_of("\x6b\0\3hi", 5);
    assert_int_equal(term_list(&c, &tail, &bytes), 0);
    assert_true(c.failed);
}

// -- texts ----------------------------------------------------------------------------------------

static void texts_that_erlang_made(void **state) {
    (void)state;
    struct slice terms = data_file("texts.bin"), texts = data_file("texts.txt");
    struct guarded g = guarded_make(4096), out = guarded_make(4096);
    struct cursor c = cursor_of(terms.data, terms.len);
    const char *line = (const char *)texts.data;
    size_t cases = 0;
    for (; cursor_left(&c) > 0; cases++) {
        uint32_t n = cursor_u32(&c);
        const uint8_t *p = cursor_claim(&c, n);
        assert_non_null(p);
        size_t expected = strcspn(line, "\n");
        struct slice term = guarded_copy(&g, p + 1, n - 1);
        for (size_t size = 1; size < 400; size++) { // cut at any size, never a byte more
            char *to = (char *)out.pages + out.size - size;
            size_t len = term_text(term, to, size);
            assert_int_equal(len, size < expected ? size : expected);
            assert_memory_equal(to, line, len);
        }
        line += expected + 1;
    }
    assert_string_equal(line, "");
    assert_true(cases >= 50);
    guarded_free(&g);
    guarded_free(&out);
    free((void *)terms.data);
    free((void *)texts.data);
}

static void expect_text(const void *bytes, size_t len, const char *expected) {
    char out[256];
    size_t n = term_text(slice_of(bytes, len), out, sizeof out - 1);
    out[n] = 0;
    assert_string_equal(out, expected);
}

static void texts_of_other_terms(void **state) {
    (void)state;
    expect_text(BYTES("\x68\2\x77\1a\x68\2\x77\1b\x61\3"), "a /b/3"); // a path and its segments
    expect_text(BYTES("\x68\2\x77\1a\x68\0"), "a /");
    expect_text(BYTES("\x68\2\x77\1a\x68\1\x77\1b"), "a /b");
    expect_text(BYTES("\x68\2\x77\1a\x68\2\x77\1b"), "a /b/term"); // cut short
    expect_text(BYTES("\x68\2\x77\3GET\x6b\0\2/b"), "GET /b");     // a method and a path
    expect_text(BYTES("\x68\2\x77\3GET\x6b\0\1/"), "GET /");
    expect_text(BYTES("\x68\2\x6b\0\3GET\x77\1b"), "GET /b");
    expect_text(BYTES("\x68\2\x6d\0\0\0\3PUT\x6d\0\0\0\0"), "PUT /");
    expect_text(BYTES("\x68\2\x77\1a\x6b\0\2/b"), "a /b");
    expect_text(BYTES("\x68\3\x77\3GET\x77\1b\x77\1/"), "GET_b_/"); // a pair only
    expect_text(BYTES("\x68\2\x68\1\x77\1a\x77\1b"), "{a}_b");      // as the printer prints it
    expect_text(BYTES("\x46\x3f\xf8\0\0\0\0\0\0"), "1.500000");
    expect_text(BYTES("\x6e\x08\0\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615");
    expect_text(BYTES("\x6e\x08\1\0\0\0\0\0\0\0\x80"), "-9223372036854775808");
    expect_text(BYTES("\x6e\x09\0\0\0\0\0\0\0\0\0\1"), "16#10000000000000000");
    expect_text(BYTES("\x74\0\0\0\1\x77\1k\x61\1"), "#{k => 1}");
    expect_text(BYTES("\x6c\0\0\0\2\x77\1x\x61\1\x6a"), "[x, 1]"); // no characters
    expect_text(BYTES("\x6c\0\0\0\1\x61\1\x61\2"), "[1 | 2]");     // improper
    expect_text(BYTES("\x68\3\x6c\0\0\0\1\x77\1x\x6a\x77\1y\x6a"),
                "[x]_y_"); // the element behind a list is the next one
    expect_text(BYTES("\x4d\0\0\0\2\3\xff\xe0"), "#Bits<255,7:3>");
    expect_text(BYTES("\x70\0\0\0\4"), "term"); // funs are not printed
    expect_text(BYTES("\x71\x77\1m\x77\1f\x61\1"), "term");
    expect_text(BYTES(""), "term");
    expect_text(BYTES("\xff"), "term");
    expect_text(BYTES("\x68\2\x77\1a"), "a_term"); // cut short
    expect_text(BYTES("\x69\xff\xff\xff\xff\x77\1a"), "a_term");
}

static void expect_text_ends(struct slice term, struct guarded *scratch) {
    for (size_t size = 1; size <= 300; size += 37) {
        char *to = (char *)scratch->pages + scratch->size - size;
        assert_true(term_text(term, to, size) <= size);
    }
    // and every term inside, on its own
    struct cursor c = cursor_of(term.data, term.len);
    uint32_t arity = term_tuple(&c);
    for (uint32_t i = 0; i < arity; i++) {
        struct slice part = term_take(&c);
        assert_true(term_text(part, (char *)scratch->pages, 200) <= 200);
    }
    assert_false(c.failed);
}

static void every_captured_term_has_a_text(void **state) {
    (void)state;
    each_term(expect_text_ends);
}

// Atoms longer than Erlang's, alone and as a node's name: the printer's buffers hold 255
// characters.
static void long_names_are_not_printed(void **state) {
    (void)state;
    uint8_t bytes[1400];
    char out[64];
    struct guarded g = guarded_make(sizeof bytes);
    static const struct {
        uint8_t tag;
        size_t tail;
    } named[] = {
        {TERM_NEW_PID, 12}, {TERM_NEW_PORT, 8}, {TERM_PID, 9}, {TERM_PORT, 5}, {TERM_REFERENCE, 5}};
    for (size_t k = 0; k < 5; k++) {
        for (size_t len = 0; len < 1300; len += len < 240 || len > 260 ? 17 : 1) {
            size_t n = 0;
            bytes[n++] = named[k].tag;
            bytes[n++] = TERM_ATOM;
            bytes[n++] = (uint8_t)(len >> 8);
            bytes[n++] = (uint8_t)len;
            memset(bytes + n, 0xe9, len); // two bytes each as UTF-8
            memset(bytes + n + len, 0, named[k].tail);
            n += len + named[k].tail;
            size_t text = term_text(guarded_copy(&g, bytes, n), out, sizeof out);
            assert_int_equal(slice_is(slice_of(out, text), "term"),
                             len > 291 - (named[k].tail - 5));
        }
    }
    guarded_free(&g);
}

static void without_memory_terms_are_not_printed(void **state) {
    (void)state;
    char out[64];
    fail_alloc_at(0);
    size_t n = term_text(slice_of("\x6c\0\0\0\2\x77\1x\x61\1\x6a", 11), out, sizeof out);
    fail_alloc_at(-1);
    assert_true(slice_is(slice_of(out, n), "term") || slice_is(slice_of(out, n), "[x, 1]"));
    // what the printer itself allocates: a binary's bytes, a big number's digits, a string's
    // characters
    static const char *const terms[] = {"\x6c\0\0\0\1\x6d\0\0\0\1x\x6a",
                                        "\x6c\0\0\0\1\x6e\1\0\1\x6a", "\x6c\0\0\0\1\x6b\0\1x\x6a"};
    static const size_t lens[] = {12, 10, 10};
    for (int i = 0; i < 3; i++) {
        for (long fail = 0; fail < 4; fail++) {
            fail_alloc_at(fail);
            n = term_text(slice_of(terms[i], lens[i]), out, sizeof out);
            fail_alloc_at(-1);
            assert_true(n > 0 && n < sizeof out);
        }
    }
}

// Mutated captures: whatever the bytes, nothing is read or written outside (the sanitizers and the
// guard pages watch).
static void expect_mutations_survive(struct slice term, struct guarded *scratch) {
    static uint64_t seed = 99;
    if (term.len > 4096) {
        return;
    }
    uint8_t copy[4096];
    char out[128];
    for (int i = 0; i < 20; i++) {
        memcpy(copy, term.data, term.len);
        for (unsigned k = 0; k < 1 + i % 4u; k++) {
            uint64_t r = random_u64(&seed);
            copy[r % term.len] = (uint8_t)(r >> 32);
        }
        struct slice s = guarded_copy(scratch, copy, term.len);
        struct cursor c = cursor_of(s.data, s.len);
        term_skip(&c);
        assert_true(c.at <= c.end);
        assert_true(term_text(s, out, sizeof out) <= sizeof out);
    }
}

static void mutations(void **state) {
    (void)state;
    each_term(expect_mutations_survive);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_every_term_of_every_capture),
        cmocka_unit_test(every_truncation_fails),
        cmocka_unit_test(reads_what_erlang_reads),
        cmocka_unit_test(hostile_counts),
        cmocka_unit_test(every_tag),
        cmocka_unit_test(deep_nesting),
        cmocka_unit_test(integers),
        cmocka_unit_test(atoms_pids_tuples_lists),
        cmocka_unit_test(texts_that_erlang_made),
        cmocka_unit_test(texts_of_other_terms),
        cmocka_unit_test(every_captured_term_has_a_text),
        cmocka_unit_test(long_names_are_not_printed),
        cmocka_unit_test(without_memory_terms_are_not_printed),
        cmocka_unit_test(mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
