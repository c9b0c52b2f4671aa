// SPDX-License-Identifier: Apache-2.0
// What kprof suggest prints of what a node says: words of a shell, comments of one line.
#include "unit.h"

#include "tool/suggest/print.h"

static struct shim_suggestions suggestions;

static void suggest(const char *option, const char *value, const char *reason) {
    suggestions.of[suggestions.count++] =
        (struct shim_suggested){slice_text(option), slice_text(value), slice_text(reason)};
}

static int empty(void **state) {
    (void)state;
    suggestions = (struct shim_suggestions){0};
    return 0;
}

static void prints(const char *cookie_file, const char *wanted) {
    struct buffer out = buffer_make(1 << 20);
    suggest_print_text(&out, &suggestions, &(struct suggest_about){"a@b", cookie_file});
    buffer_append(&out, "", 1);
    assert_string_equal((const char *)out.data, wanted);
    buffer_free(&out);
}

static void text(void **state) {
    (void)state;
    suggest("entry", "MyApp.Endpoint.call/2,returns=none", "a Phoenix endpoint");
    suggest("identity", "fun({m, f, [X]}) -> X end", "its name");
    suggestions.notes[suggestions.note_count++] = slice_text("it is idle");
    prints("my cookie", "# What to trace in a@b, and why:\n"
                        "#\n"
                        "#   --entry MyApp.Endpoint.call/2,returns=none\n"
                        "#       a Phoenix endpoint\n"
                        "#   --identity\n"
                        "#       its name\n"
                        "# Note: it is idle\n"
                        "\n"
                        "kprof attach a@b --cookie-file 'my cookie' \\\n"
                        "  --entry MyApp.Endpoint.call/2,returns=none \\\n"
                        "  --identity 'fun({m, f, [X]}) -> X end'\n");
}

// Whatever a module is called, a shell takes the value for one word, and the reason for a comment.
static void hostile(void **state) {
    (void)state;
    suggest("tier", "a='$(touch x)':f/1", "x\nrm -rf /");
    suggest("tier", "b=M.get!/2", "\x1b[31mred");
    suggest("tier", "c='it is':f/1", "");
    prints(NULL, "# What to trace in a@b, and why:\n"
                 "#\n"
                 "#   --tier a='$(touch x)':f/1\n"
                 "#       x?rm -rf /\n"
                 "#   --tier b=M.get!/2\n"
                 "#       ?[31mred\n"
                 "#   --tier c='it is':f/1\n"
                 "#       \n"
                 "\n"
                 "kprof attach a@b \\\n"
                 "  --tier 'a='\\''$(touch x)'\\'':f/1' \\\n"
                 "  --tier 'b=M.get!/2' \\\n"
                 "  --tier \"c='it is':f/1\"\n");
}

static void json(void **state) {
    (void)state;
    suggest("tier", "db=m:f/1", "a \"reason\"");
    struct buffer out = buffer_make(1 << 20);
    suggest_print_json(&out, &suggestions, &(struct suggest_about){"a@b", NULL});
    buffer_append(&out, "", 1);
    assert_string_equal((const char *)out.data,
                        "{\"node\":\"a@b\",\"command\":\"kprof attach a@b --tier db=m:f/1\","
                        "\"options\":[{\"option\":\"tier\",\"value\":\"db=m:f/1\","
                        "\"reason\":\"a \\\"reason\\\"\"}],\"notes\":[]}\n");
    buffer_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(text, empty),
                                       cmocka_unit_test_setup(hostile, empty),
                                       cmocka_unit_test_setup(json, empty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
