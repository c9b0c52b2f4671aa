// SPDX-License-Identifier: Apache-2.0
#include "model/directory/directory.h"

#include "base/limits.h"
#include "unit.h"

static void fixed_names(void **state) {
    (void)state;
    struct directory d;
    assert_true(directory_init(&d));
    assert_string_equal(names_text(&d.identities, IDENTITY_TOTAL), "_total");
    assert_string_equal(names_text(&d.identities, IDENTITY_UNDEFINED), "undefined");
    assert_string_equal(names_text(&d.identities, IDENTITY_OTHER), "_other");
    assert_string_equal(names_text(&d.identities, IDENTITY_REMOTE), "_remote");
    assert_string_equal(names_text(&d.tiers, TIER_TOTAL), "_total");
    assert_int_equal(directory_identity(&d, slice_text("_other")), IDENTITY_OTHER);
    assert_int_equal(directory_tier(&d, slice_text("_total")), TIER_TOTAL);
    assert_int_equal(directory_node(&d, slice_text("shop@host")), 0);
    assert_int_equal(directory_identity(&d, slice_text("create")), IDENTITIES_FIXED);
    assert_int_equal(directory_tier(&d, slice_text("create")), 1);
    directory_free(&d);
}

static uint32_t fill(struct directory *d, uint16_t (*add)(struct directory *, struct slice),
                     uint16_t full) {
    char text[16];
    for (uint32_t i = 0;; i++) {
        snprintf(text, sizeof text, "n%u", i);
        if (add(d, slice_text(text)) == full) {
            return i;
        }
    }
}

static void limits(void **state) {
    (void)state;
    struct directory d;
    assert_true(directory_init(&d));
    assert_int_equal(fill(&d, directory_node, DIRECTORY_NONE), LIMIT_NODES);
    assert_int_equal(fill(&d, directory_tier, DIRECTORY_NONE), LIMIT_TIER_NAMES);
    assert_int_equal(fill(&d, directory_identity, IDENTITY_OTHER), LIMIT_IDENTITIES);
    assert_int_equal(directory_identity(&d, slice_text("n5")),
                     IDENTITIES_FIXED + 5); // known ones keep their number
    directory_free(&d);
}

// A node may have its share of new names; those that others use already cost nothing.
static void a_share_for_each_node(void **state) {
    (void)state;
    struct directory d;
    char text[16];
    assert_true(directory_init(&d));
    d.shared = true;
    uint32_t hog = 0, other = 0;
    for (uint32_t i = 0; i < LIMIT_IDENTITIES; i++) {
        snprintf(text, sizeof text, "hog%u", i);
        hog += directory_identity_of(&d, 7, slice_text(text)) != IDENTITY_OTHER;
        directory_tier_of(&d, 7, slice_text(text));
    }
    assert_int_equal(hog, LIMIT_IDENTITIES / 4 * 3);
    assert_true(d.identity_refused);
    for (uint32_t i = 0; i < 150; i++) {
        snprintf(text, sizeof text, "other%u", i);
        other += directory_identity_of(&d, 8, slice_text(text)) != IDENTITY_OTHER;
        assert_true(directory_tier_of(&d, 8, slice_text(text)) != DIRECTORY_NONE);
    }
    assert_int_equal(other, 150);
    assert_int_equal(directory_identity_of(&d, 9, slice_text("hog3")), IDENTITIES_FIXED + 3);
    assert_int_equal(d.identity_owners.own[9], 0);
    directory_free(&d);
}

// Names that node wants for itself. Returns how many it got.
static uint32_t wants_tiers(struct directory *d, uint16_t node, uint32_t many) {
    char text[32];
    uint32_t got = 0;
    for (uint32_t i = 0; i < many; i++) {
        snprintf(text, sizeof text, "%u of %u", i, node);
        got += directory_tier_of(d, node, slice_text(text)) != DIRECTORY_NONE;
    }
    return got;
}

// However many nodes want all names of tiers for as long as they are there, each has some that it
// is sure of.
static void sure_of_some_tiers(void **state) {
    (void)state;
    struct directory d;
    assert_true(directory_init(&d));
    directory_share(&d);
    directory_node(&d, slice_text("one"));
    for (uint16_t node = 0; node < LIMIT_NODES - 1; node++) {
        uint32_t got = wants_tiers(&d, node, LIMIT_TIERS);
        assert_true(got >= LIMIT_SURE_TIER_NAMES && (node > 2 || got == LIMIT_TIERS));
    }
    assert_int_equal(wants_tiers(&d, LIMIT_NODES - 1, LIMIT_TIERS), LIMIT_SURE_TIER_NAMES);
    assert_true(d.tier_refused && names_count(&d.tiers) <= LIMIT_TIER_NAMES + 1);
    // of a node that is forgotten but still named, nobody has what others are sure of
    directory_forget_node(&d, 0);
    assert_true(directory_wants_tiers(&d));
    assert_int_equal(wants_tiers(&d, LIMIT_NODES - 2, 2 * LIMIT_TIERS), LIMIT_SURE_TIER_NAMES);
    directory_free(&d);
}

// What is given back makes room, for another name under the same id; what a forgotten node was
// charged with stays.
static void given_back(void **state) {
    (void)state;
    static struct directory_used used;
    struct directory d;
    char text[16];
    assert_true(directory_init(&d));
    d.shared = true;
    for (uint32_t round = 0; round < 3000; round++) {
        snprintf(text, sizeof text, "pod%u@host", round);
        uint16_t node = directory_node(&d, slice_text(text));
        assert_true(node < LIMIT_NODES);
        uint16_t id = directory_identity_of(&d, node, slice_text(text));
        assert_true(id >= IDENTITIES_FIXED && id != IDENTITY_OTHER);
        assert_string_equal(names_text(&d.identities, id), text);
        uint32_t generation = names_generation(&d.identities, id);
        memset(&used, 0, sizeof used);
        directory_forget(&d, 0, &used);
        assert_int_equal(names_find(&d.identities, slice_text(text)), NAME_NONE);
        assert_true(names_generation(&d.identities, id) != generation);
        assert_int_equal(d.identity_owners.own[node], 0);
        if (round >= 200) {
            directory_forget_node(&d, (uint16_t)(round * 7 % 200));
            snprintf(text, sizeof text, "again%u@host", round);
            // the lowest that is free
            assert_int_equal(directory_node(&d, slice_text(text)), round * 7 % 200);
        }
        if (round >= 240) {
            directory_forget_node(&d, node);
        }
    }
    assert_string_equal(names_text(&d.identities, IDENTITY_REMOTE), "_remote");
    directory_free(&d);
}

// What two users name stays until both have given it back; a node is the one's that named it first.
static void users(void **state) {
    (void)state;
    static struct directory_used none, used;
    struct directory d;
    assert_true(directory_init(&d));
    directory_thread(&d);
    uint16_t a = directory_node_of(&d, 0, slice_text("a@h")),
             b = directory_node_of(&d, 1, slice_text("b@h"));
    assert_int_equal(directory_node_of(&d, 1, slice_text("a@h")), DIRECTORY_NONE);
    assert_int_equal(directory_node_of(&d, 1, slice_text("b@h")), b);
    uint16_t name = directory_identity_of(&d, a, slice_text("name")),
             db = directory_tier_of(&d, a, slice_text("db"));
    uint32_t path = paths_below(&d.paths, a, PATH_ROOT, db);
    assert_int_equal(directory_identity_of(&d, b, slice_text("name")), name);
    assert_int_equal(directory_tier_of(&d, b, slice_text("db")), db);
    assert_int_equal(paths_below(&d.paths, b, PATH_ROOT, db), path);
    uint32_t generation = d.paths.all[path].generation;
    directory_forget(&d, 0, &used);
    assert_false(used.identities[name] || used.tiers[db]);        // user 0 has given them back,
    assert_string_equal(names_text(&d.identities, name), "name"); // user 1 has them
    assert_string_equal(names_text(&d.tiers, db), "db");
    assert_int_equal(d.paths.all[path].generation, generation);
    used = none;
    directory_forget(&d, 0, &used);
    assert_true(used.identities[name] && used.tiers[db]); // which is nothing to give back again
    used = none;
    directory_forget(&d, 1, &used);
    assert_int_equal(names_find(&d.identities, slice_text("name")), NAME_NONE);
    assert_int_equal(names_find(&d.tiers, slice_text("db")), NAME_NONE);
    assert_int_equal(paths_count(&d.paths), 0);
    directory_free(&d);
}

// Each user gives back when one was refused, also when that was another's.
static void refused_to_all_users(void **state) {
    (void)state;
    static struct directory_used used;
    struct directory d;
    assert_true(directory_init(&d));
    directory_thread(&d);
    assert_int_equal(directory_wants(&d, 1), DIRECTORY_PLENTY);
    fill(&d, directory_identity, IDENTITY_OTHER);
    assert_int_equal(directory_wants(&d, 0), DIRECTORY_REFUSED);
    assert_int_equal(directory_wants(&d, 1), DIRECTORY_REFUSED);
    directory_forget(&d, 1, &used); // which has none
    assert_int_equal(directory_wants(&d, 1), DIRECTORY_FEW);
    assert_int_equal(directory_wants(&d, 0), DIRECTORY_REFUSED);
    memset(&used, 0, sizeof used);
    directory_forget(&d, 0, &used);
    assert_int_equal(directory_wants(&d, 0), DIRECTORY_PLENTY);
    directory_free(&d);
}

static void without_memory(void **state) {
    (void)state;
    struct directory d;
    fail_alloc_at(-1);
    assert_true(directory_init(&d));
    long all = fail_alloc_count();
    directory_free(&d);
    assert_true(all >= 10);
    for (long fail = 0; fail < all; fail++) {
        fail_alloc_at(fail);
        assert_false(directory_init(&d)); // and gives back what it took: the leak checker watches
        fail_alloc_once(fail);
        assert_false(directory_init(&d));
        fail_alloc_at(-1);
    }
}

// Tiers stay that something names, were it only a path.
static void tiers_given_back(void **state) {
    (void)state;
    static struct directory_used used;
    struct directory d;
    assert_true(directory_init(&d));
    uint16_t a = directory_tier_of(&d, 3, slice_text("a")),
             b = directory_tier_of(&d, 3, slice_text("b"));
    uint16_t c = directory_tier_of(&d, 3, slice_text("c")),
             e = directory_tier_of(&d, 3, slice_text("e"));
    used.paths[paths_below(&d.paths, 3, paths_below(&d.paths, 3, PATH_ROOT, a), b)] = true;
    paths_below(&d.paths, 3, PATH_ROOT, e);
    used.tiers[c] = true;
    directory_forget(&d, 0, &used);
    assert_int_equal(d.tier_owners.own[3], 3);
    assert_int_equal(paths_count(&d.paths), 2);
    assert_int_equal(directory_tier(&d, slice_text("a")), a);
    assert_int_equal(directory_tier(&d, slice_text("b")), b);
    assert_int_equal(directory_tier(&d, slice_text("c")), c);
    assert_int_equal(directory_tier(&d, slice_text("_total")), TIER_TOTAL);
    assert_int_equal(directory_tier(&d, slice_text("another")), e);
    directory_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_names),
        cmocka_unit_test(limits),
        cmocka_unit_test(a_share_for_each_node),
        cmocka_unit_test(sure_of_some_tiers),
        cmocka_unit_test(given_back),
        cmocka_unit_test(tiers_given_back),
        cmocka_unit_test(users),
        cmocka_unit_test(refused_to_all_users),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
