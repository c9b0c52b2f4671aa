#include "model/directory.h"

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

static uint32_t fill(struct directory *d, uint16_t (*add)(struct directory *, struct slice), uint16_t full) {
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
    assert_int_equal(directory_identity(&d, slice_text("n5")), IDENTITIES_FIXED + 5); // known ones keep their number
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_names),
        cmocka_unit_test(limits),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
