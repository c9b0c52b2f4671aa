// SPDX-License-Identifier: Apache-2.0
// The address at which a node is told to find a collector of a command's own.
#include "tool_fixture.h"

#include <arpa/inet.h>

#include "tool/own.h"

static bool at(const char *here, const char *there, const char *wanted) {
    struct in_addr a, b;
    char out[INET_ADDRSTRLEN];
    assert_int_equal(inet_pton(AF_INET, here, &a), 1);
    assert_int_equal(inet_pton(AF_INET, there, &b), 1);
    bool same = own_address(a, b, out);
    assert_string_equal(out, wanted);
    return same;
}

static void address(void **state) {
    (void)state;
    assert_true(at("127.0.0.1", "127.0.0.1", "127.0.0.1"));
    assert_true(at("127.0.0.1", "127.0.1.1", "127.0.0.1")); // Debian's name of the host itself
    assert_true(at("10.0.0.5", "10.0.0.5", "127.0.0.1"));   // by its address to others
    assert_false(at("10.0.0.5", "10.0.0.6", "10.0.0.5"));
    assert_false(at("172.17.0.1", "172.17.0.2", "172.17.0.1")); // a container
}

static void names(void **state) {
    (void)state;
    assert_true(own_is_here("shop"));
    assert_true(own_is_here("shop@127.0.0.1"));
    assert_true(own_is_here("shop@localhost"));
    assert_false(own_is_here("shop@192.0.2.1")); // nobody's (RFC 5737)
    assert_false(own_is_here("shop@nowhere.invalid"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(address), cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
