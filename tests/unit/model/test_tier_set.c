// SPDX-License-Identifier: Apache-2.0
#include "model/message/tier_set.h"

#include "base/limits.h"
#include "unit.h"

// A message whose function's names are encoded one after the other, as UTF-8 or Latin-1.
static struct message message_of(const char *m, const char *f, uint32_t arity, bool latin1,
                                 uint8_t *room) {
    size_t a = strlen(m), b = strlen(f);
    room[0] = latin1 ? TERM_SMALL_ATOM : TERM_SMALL_ATOM_UTF8;
    room[1] = (uint8_t)a;
    memcpy(room + 2, m, a);
    room[2 + a] = room[0];
    room[3 + a] = (uint8_t)b;
    memcpy(room + 4 + a, f, b);
    return (struct message){.module = {slice_of(room + 2, a), latin1},
                            .function = {slice_of(room + 4 + a, b), latin1},
                            .name = slice_of(room, 4 + a + b),
                            .arity = arity};
}

static const struct traced_function *find(struct tier_set *s, const char *m, const char *f,
                                          uint32_t arity, bool latin1) {
    static uint8_t room[600];
    struct message message = message_of(m, f, arity, latin1, room);
    const struct traced_function *first = tier_set_find(s, &message);
    assert_ptr_equal(tier_set_find(s, &message), first); // remembered
    return first;
}

static enum tier_set_result add(struct tier_set *s, const char *m, const char *f, uint32_t arity,
                                uint16_t tier) {
    return tier_set_add(s, slice_text(m), slice_text(f), arity, tier);
}

static void roles(void **state) {
    (void)state;
    struct tier_set s;
    assert_true(tier_set_init(&s));
    assert_int_equal(find(&s, "kprof_mark", "request_begin", 1, false)->role, ROLE_BEGIN);
    assert_int_equal(find(&s, "kprof_mark", "web_begin", 1, false)->role, ROLE_WEB_BEGIN);
    assert_int_equal(find(&s, "kprof_mark", "trace_parent", 1, false)->role, ROLE_PARENT);
    assert_int_equal(add(&s, "kprof_mark", "trace_parent", 1, 9), TIER_SET_DUPLICATE);
    assert_int_equal(
        tier_set_name_by(&s, slice_text("kprof_mark"), slice_text("trace_parent"), 1, 1),
        TIER_SET_DUPLICATE);
    assert_int_equal(find(&s, "kprof_mark", "request_end", 1, true)->role, ROLE_END);
    assert_int_equal(find(&s, "kprof_mark", "says", 1, true)->role, ROLE_SAYS);
    assert_null(find(&s, "kprof_mark", "request_end", 2, false));
    assert_null(find(&s, "db", "query", 2, false)); // asked for before it is there
    assert_int_equal(add(&s, "db", "query", 2, 7), TIER_SET_OK);
    assert_int_equal(find(&s, "db", "query", 2, false)->tier, 7);
    assert_int_equal(find(&s, "db", "query", 2, true)->role, ROLE_TIER);
    assert_null(find(&s, "db", "query", 1, false));
    assert_null(find(&s, "d", "bquery", 2, false));
    assert_null(find(&s, "query", "db", 2, false));
    assert_null(find(&s, "db", "query", UINT32_MAX, false));
    assert_int_equal(add(&s, "db", "query", 2, 8), TIER_SET_DUPLICATE);
    assert_int_equal(add(&s, "db", "query", 3, 7),
                     TIER_SET_OK); // one tier may have several functions
    assert_int_equal(add(&s, "kprof_mark", "request_end", 1, 9), TIER_SET_DUPLICATE);
    assert_int_equal(s.tiers, 2);
    // an argument that names, of a tier and of none
    assert_int_equal(tier_set_name_by(&s, slice_text("db"), slice_text("query"), 2, 1),
                     TIER_SET_OK);
    assert_int_equal(find(&s, "db", "query", 2, false)->identity_argument, 1);
    assert_int_equal(find(&s, "db", "query", 2, false)->role, ROLE_TIER);
    assert_int_equal(tier_set_name_by(&s, slice_text("db"), slice_text("query"), 2, 2),
                     TIER_SET_DUPLICATE);
    assert_int_equal(tier_set_name_by(&s, slice_text("web"), slice_text("get"), 1, 1), TIER_SET_OK);
    assert_int_equal(find(&s, "web", "get", 1, false)->role, ROLE_NAMING);
    assert_int_equal(find(&s, "web", "get", 1, false)->tier, TIER_NONE);
    assert_int_equal(add(&s, "web", "get", 1, 9), TIER_SET_OK); // becomes a tier
    assert_int_equal(find(&s, "web", "get", 1, false)->tier, 9);
    assert_int_equal(
        tier_set_name_by(&s, slice_text("kprof_mark"), slice_text("request_begin"), 1, 1),
        TIER_SET_DUPLICATE);
    tier_set_free(&s);
}

// The same name in either encoding; other bytes are other names.
static void encodings(void **state) {
    (void)state;
    struct tier_set s;
    char longest[256], expected[511];
    assert_true(tier_set_init(&s));
    assert_int_equal(add(&s, "größe", "ÿ", 1, 3), TIER_SET_OK);
    assert_int_equal(find(&s,
                          "gr\xf6\xdf"
                          "e",
                          "\xff", 1, true)
                         ->tier,
                     3);
    assert_int_equal(find(&s, "größe", "ÿ", 1, false)->tier, 3);
    assert_null(find(&s, "größe", "ÿ", 1, true));
    memset(longest, 0xe4, 255);
    longest[255] = 0;
    for (int i = 0; i < 255; i++) {
        memcpy(expected + 2 * i, "ä", 2);
    }
    expected[510] = 0;
    assert_int_equal(add(&s, expected, "f", 0, 4), TIER_SET_OK);
    assert_int_equal(find(&s, longest, "f", 0, true)->tier, 4);
    tier_set_free(&s);
}

static void limits(void **state) {
    (void)state;
    struct tier_set s;
    char name[32];
    assert_true(tier_set_init(&s));
    for (unsigned i = 0; i < LIMIT_TIERS; i++) {
        snprintf(name, sizeof name, "m%u", i);
        assert_int_equal(add(&s, name, "f", 1, (uint16_t)(i + 1)), TIER_SET_OK);
    }
    assert_int_equal(add(&s, "one", "more", 1, 1), TIER_SET_FULL);
    for (unsigned i = 0; i < LIMIT_TIERS; i++) {
        snprintf(name, sizeof name, "m%u", i);
        assert_int_equal(find(&s, name, "f", 1, false)->tier, i + 1);
    }
    // names that are no tier are remembered up to a limit, and found right past it
    for (unsigned i = 0; i < 3 * LIMIT_FUNCTION_NAMES; i++) {
        snprintf(name, sizeof name, "x%u", i);
        assert_null(find(&s, name, "f", 1, false));
        assert_true(s.by_name.count <= LIMIT_FUNCTION_NAMES);
    }
    assert_int_equal(find(&s, "m7", "f", 1, false)->tier, 8);
    tier_set_free(&s);
}

static void without_memory(void **state) {
    (void)state;
    for (long fail = 0; fail < 12; fail++) {
        struct tier_set s;
        fail_alloc_once(fail);
        if (tier_set_init(&s)) {
            enum tier_set_result result = add(&s, "db", "query", 2, 7);
            fail_alloc_at(0); // nothing can be remembered any more
            const struct traced_function *f = find(&s, "db", "query", 2, false);
            assert_int_equal(f != NULL, result == TIER_SET_OK);
            fail_alloc_at(-1);
            tier_set_free(&s);
        }
        fail_alloc_at(-1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(roles), cmocka_unit_test(encodings),
                                       cmocka_unit_test(limits), cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
