// SPDX-License-Identifier: Apache-2.0
// What can be ordered over HTTP: addresses and bodies.
#include "unit.h"

#include "web/orders.h"

static struct order found(const char *path) {
    struct order o;
    if (!order_find(path, &o)) {
        fail_msg("nothing at %s", path);
    }
    return o;
}

static void addresses(void **state) {
    (void)state;
    struct order o = found("/api/v1/nodes/shop@host/pause");
    assert_int_equal(o.kind, ORDER_PAUSE);
    assert_string_equal(o.node, "shop@host");
    o = found("/api/v1/nodes/shop%40h%C3%b6st%2Fx/sample");
    assert_int_equal(o.kind, ORDER_SAMPLE);
    assert_string_equal(o.node, "shop@höst/x");
    assert_int_equal(found("/api/v1/nodes/pause/resume").kind, ORDER_RESUME);
    assert_int_equal(found("/api/v1/notes").kind, ORDER_NOTE);
    assert_int_equal(found("/api/v1/flame").kind, ORDER_FLAME);
    assert_int_equal(found("/api/v1/flame/stop").kind, ORDER_FLAME_STOP);
    assert_int_equal(found("/api/v1/sample").kind, ORDER_STACKS);
    assert_int_equal(found("/api/v1/sample/stop").kind, ORDER_STACKS_STOP);
    assert_int_equal(found("/api/v1/top").kind, ORDER_TOP);
    static const char *const none[] = {"/api/v1/nodes",
                                       "/api/v1/nodes/pause",
                                       "/api/v1/nodes//pause",
                                       "/api/v1/nodes/a/b/pause",
                                       "/api/v1/nodes/a/dance",
                                       "/api/v1/nodes/%/pause",
                                       "/api/v1/nodes/%4/pause",
                                       "/api/v1/nodes/%zz/pause",
                                       "/api/v1/nodes/%00/pause",
                                       "/api/v1/notes/",
                                       "/api/v1/flame/",
                                       "/api/v1/sample/",
                                       "/api/v1/top/",
                                       ""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        if (order_find(none[i], &o)) {
            fail_msg("something at %s", none[i]);
        }
    }
    char path[ORDER_NAME_BYTES + 100];
    snprintf(path, sizeof path, "/api/v1/nodes/%0*d/pause", ORDER_NAME_BYTES, 0);
    assert_false(order_find(path, &o));
}

static void expect(const char *path, const char *body, const char *why) {
    struct order o = found(path);
    char said[ORDER_WHY_BYTES] = "";
    bool ok = order_parse(&o, slice_text(body), said);
    if (ok != !why || (why && !strstr(said, why))) {
        fail_msg("%s: said \"%s\"", body, said);
    }
}

static void bodies(void **state) {
    (void)state;
    static const char pause[] = "/api/v1/nodes/a/pause", sample[] = "/api/v1/nodes/a/sample",
                      note[] = "/api/v1/notes", flame[] = "/api/v1/flame",
                      stop[] = "/api/v1/flame/stop", stacks[] = "/api/v1/sample",
                      stacks_stop[] = "/api/v1/sample/stop", top[] = "/api/v1/top";
    expect(pause, "", NULL);
    expect(pause, "{}", NULL);
    expect(pause, "{\"text\":\"x\"}", "text: nothing of that name");
    expect(pause, "[]", "the body: want a JSON object");
    expect(sample, "{\"one_in\":1}", NULL);
    expect(sample, "{\"per_second\":1000000}", NULL);
    expect(sample, "", "one_in or per_second");
    expect(sample, "{\"one_in\":5,\"per_second\":5}", "one of the two");
    expect(sample, "{\"one_in\":0}", "one_in: want a whole number from 1 to");
    expect(sample, "{\"one_in\":\"5\"}", "one_in: want a whole number");
    expect(sample, "{\"one_in\":1,\"one_in\":2}", "one_in stands twice");
    expect(sample, "{\"per_second\":1000001}", "per_second: want a whole number from 1 to 1000000");
    expect(note, "{\"text\":\"deployed\"}", NULL);
    expect(note, "{\"text\":\"deployed\",\"node\":\"a\",\"at_s\":1763640000}", NULL);
    expect(note, "{\"node\":\"a\"}", "text is missing");
    expect(note, "{\"text\":\"\"}", "text: want a text of 1 to 240 bytes");
    expect(note, "{\"text\":5}", "text: want a text");
    expect(note, "{\"text\":null}", "text: want a text");
    expect(note, "{\"text\":\"a\",\"at_s\":253402300800}", "at_s: want a whole number");
    expect(flame, "{\"node\":\"a\",\"requests\":20,\"seconds\":60}", NULL);
    expect(flame, "{\"node\":\"a\",\"requests\":20,\"seconds\":60,\"identity\":\"x\"}", NULL);
    expect(flame, "{\"requests\":20,\"seconds\":60}", "node is missing");
    expect(flame, "{\"node\":\"a\",\"requests\":100000,\"seconds\":3600}", NULL);
    expect(flame, "{\"node\":\"a\",\"requests\":20,\"seconds\":3601}", "from 1 to 3600");
    expect(flame, "{\"node\":\"a\",\"requests\":100001,\"seconds\":60}", "from 1 to 100000");
    expect(stop, "{\"id\":3}", NULL);
    expect(stop, "{}", "id is missing");
    expect(stacks, "{\"node\":\"a\",\"seconds\":60}", NULL);
    expect(stacks,
           "{\"node\":\"a\",\"seconds\":86400,\"hz\":1000,\"top\":1,\"by\":\"binary\","
           "\"every_ms\":100,\"budget_ppm\":500000,\"application\":\"shop\","
           "\"registered\":\"x\",\"pid\":\"<0.1.0>\"}",
           NULL);
    expect(stacks, "{\"node\":\"a\"}", "seconds is missing");
    expect(stacks, "{\"node\":\"a\",\"seconds\":86401}", "from 1 to 86400");
    expect(stacks, "{\"node\":\"a\",\"seconds\":1,\"hz\":1001}",
           "hz: want a whole number from 1 to");
    expect(stacks, "{\"node\":\"a\",\"seconds\":1,\"by\":\"name\"}",
           "by: want one of reductions, memory, message_queue_len and binary");
    expect(stacks, "{\"node\":\"a\",\"seconds\":1,\"requests\":1}", "nothing of that name");
    expect(stacks_stop, "{\"id\":0}", "id: want a whole number");
    expect(top, "{\"node\":\"a\",\"by\":\"memory\"}", NULL);
    expect(top, "{\"by\":\"memory\"}", "node is missing");
    struct order o = found(flame);
    char why[ORDER_WHY_BYTES], body[2 * ORDER_NAME_BYTES + 50];
    snprintf(body, sizeof body, "{\"node\":\"%0*d\"}", ORDER_NAME_BYTES, 0);
    assert_false(order_parse(&o, slice_text(body), why));
    assert_non_null(strstr(why, "node: want a text of 1 to"));
}

static void values(void **state) {
    (void)state;
    char why[ORDER_WHY_BYTES];
    struct order o = found("/api/v1/flame");
    assert_true(order_parse(&o,
                            slice_text("{\"node\":\"a\\u0040h\",\"requests\":20,\"seconds\":60,"
                                       "\"identity\":\"create\"}"),
                            why));
    assert_string_equal(o.node, "a@h");
    assert_string_equal(o.identity, "create");
    assert_true(o.requests == 20 && o.seconds == 60);
    o = found("/api/v1/notes");
    assert_true(order_parse(&o, slice_text("{\"at_s\":7,\"text\":\"x y\"}"), why));
    assert_string_equal(o.text, "x y");
    assert_string_equal(o.node, "");
    assert_int_equal(o.at_s, 7);
    o = found("/api/v1/nodes/a/sample");
    assert_true(order_parse(&o, slice_text("{\"per_second\":9}"), why));
    assert_true(o.one_in == 0 && o.per_second == 9);
}

static void values_of_stacks(void **state) {
    (void)state;
    char why[ORDER_WHY_BYTES];
    struct order o = found("/api/v1/sample");
    assert_true(order_parse(
        &o, slice_text("{\"top\":7,\"node\":\"a\",\"hz\":9,\"by\":\"memory\",\"seconds\":3}"),
        why));
    assert_true(o.seconds == 3 && o.hz == 9 && o.top == 7 && o.every_ms == 0);
    assert_string_equal(o.by, "memory");
    assert_string_equal(o.pid, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(addresses), cmocka_unit_test(bodies),
                                       cmocka_unit_test(values),
                                       cmocka_unit_test(values_of_stacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
