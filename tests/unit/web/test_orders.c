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
    o = found("/api/v1/nodes/triggers@add/triggers");
    assert_int_equal(o.kind, ORDER_TRIGGERS);
    assert_string_equal(o.node, "triggers@add");
    o = found("/api/v1/nodes/shop%40host/triggers/add");
    assert_int_equal(o.kind, ORDER_TRIGGER_ADD);
    assert_string_equal(o.node, "shop@host");
    assert_int_equal(found("/api/v1/nodes/a/triggers/remove").kind, ORDER_TRIGGER_REMOVE);
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
                                       "/api/v1/nodes/triggers",
                                       "/api/v1/nodes/triggers/add",
                                       "/api/v1/nodes/a/triggers/",
                                       "/api/v1/nodes/a/b/triggers/add",
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

static void triggers(void **state) {
    (void)state;
    static const char add[] = "/api/v1/nodes/a/triggers/add",
                      remove[] = "/api/v1/nodes/a/triggers/remove";
    static const struct {
        const char *body, *why;
    } bodies[] = {
        {"{\"trigger\":\"run_queue\",\"above\":8}", NULL},
        {"{\"trigger\":\"memory\",\"above\":0,\"high_water\":true,\"label\":\"x\"}", NULL},
        {"{\"trigger\":\"tier_p99\",\"tier\":\"http\",\"above_us\":1500}", NULL},
        {"{\"trigger\":\"run_queue\",\"above\":8,\"high_water\":false,\"for_ms\":0}", NULL},
        {"", "trigger is missing"},
        {"{\"above\":8}", "trigger is missing"},
        {"{\"trigger\":\"load\",\"above\":8}",
         "trigger: want one of run_queue, message_queue_len, memory, reductions and tier_p99"},
        {"{\"trigger\":\"run_queue\"}", "above is missing"},
        {"{\"trigger\":\"run_queue\",\"above_us\":8}", "above is missing"},
        {"{\"trigger\":\"run_queue\",\"above\":-1}", "above: want a whole number from 0"},
        {"{\"trigger\":\"run_queue\",\"above\":9007199254740993}", "to 9007199254740992"},
        {"{\"trigger\":\"run_queue\",\"above\":8,\"tier\":\"http\"}", "of tier_p99 alone"},
        {"{\"trigger\":\"run_queue\",\"above\":8,\"above_us\":8}", "of tier_p99 alone"},
        {"{\"trigger\":\"tier_p99\",\"above_us\":8}", "want tier and above_us, and no above"},
        {"{\"trigger\":\"tier_p99\",\"tier\":\"a\",\"above_us\":8,\"above\":8}", "and no above"},
        {"{\"trigger\":\"tier_p99\",\"tier\":\"a\",\"above\":8}", "above_us is missing"},
        {"{\"trigger\":\"run_queue\",\"above\":8,\"high_water\":1}",
         "high_water: want true or false"},
        {"{\"trigger\":\"run_queue\",\"above\":8,\"high_water\":true,\"for_ms\":1}",
         "either for_ms or high_water"},
        {"{\"trigger\":\"run_queue\",\"above\":8,\"every_ms\":9999}", "from 10000 to 604800000"},
        {"{\"trigger\":\"run_queue\",\"above\":8,\"seconds\":3601}", "from 1 to 3600"},
        {"{\"trigger\":\"run_queue\",\"above\":8,\"node\":\"b\"}", "node: nothing of that name"},
        {"{\"trigger\":\"run_queue\",\"above\":8,\"name\":\"\"}", "name: want a text of 1 to"},
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        expect(add, bodies[i].body, bodies[i].why);
    }
    expect(remove, "{\"name\":\"x\"}", NULL);
    expect(remove, "{}", "name is missing");
    expect(remove, "{\"name\":\"x\",\"all\":true}", "all: nothing of that name");
    char why[ORDER_WHY_BYTES];
    struct order o = found(add);
    assert_true(order_parse(&o,
                            slice_text("{\"trigger\":\"reductions\",\"above\":8,\"for_ms\":0,"
                                       "\"every_ms\":10000,\"hz\":7,\"name\":\"busy\"}"),
                            why));
    assert_true(o.above == 8 && o.above_us == -1 && o.for_ms == 0 && o.every_ms == 10000);
    assert_true(o.hz == 7 && o.seconds == 0 && !o.high_water);
    assert_string_equal(o.name, "busy");
    assert_string_equal(o.trigger, "reductions");
    o = found(add);
    assert_true(o.above == -1 && o.above_us == -1 && o.for_ms == -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(addresses), cmocka_unit_test(bodies),
                                       cmocka_unit_test(values), cmocka_unit_test(values_of_stacks),
                                       cmocka_unit_test(triggers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
