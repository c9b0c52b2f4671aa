// SPDX-License-Identifier: Apache-2.0
// kprof flame --out x.perf.txt of samples: the text of perf script, by the regular expressions of
// those who read it.
#include "sample_kept.h"

#include <regex.h>

enum { MS = 1000 };

static const char *written(const char *arguments) {
    static char text[1 << 16];
    char more[256];
    snprintf(more, sizeof more, "%s --out %s/x.perf.txt", arguments, fixture_dir);
    assert_int_equal(tool_ask("flame", more), 0);
    snprintf(more, sizeof more, "%s/x.perf.txt", fixture_dir);
    FILE *f = fopen(more, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void keep_usual(void) {
    struct told t;
    begin(&t);
    frame(&t, "x+y", "a->b (c)", 0);
    put(&t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 2, .frames = {0, 3}});
    look(&t, 0, STATUS_RUNNING, 2, 0, 1000);
    look(&t, 1, STATUS_COLLECTING, 4, 7, 0);
    at(&t, 100 * MS + 5);
    look(&t, 0, STATUS_RUNNABLE, 2, 45, 400);
    unchanged(&t, 1);
    at(&t, 1000 * MS);
    unanswered(&t, 0);
    keep(&t, 2);
}

static void exactly(void **state) {
    (void)state;
    keep_usual();
    assert_string_equal(
        written("--profile 1 --metric reductions"),
        "garbage_collecting 1/101 [000] 1763640000.000000: metric_erlang_reductions: 7, 7 "
        "metric_erlang_message_queue_len: 0, 0 :          7 reductions:\n"
        "\tffffffff 'x.y':'a-.b .c.'/0 (x.y.erl)\n"
        "\tffffffff m:f/1 (m.erl)\n"
        "\n"
        "runnable 1/100 [000] 1763640000.100005: metric_erlang_reductions: 45, 45 "
        "metric_erlang_message_queue_len: 20, 0 metric_erlang_memory: 400, -600 :         45 "
        "reductions:\n"
        "\tffffffff m:g/0 (m.erl)\n"
        "\tffffffff m:f/1 (m.erl)\n"
        "\n");
    assert_string_equal(written("--profile 1 --from 1s"),
                        "did_not_answer 1/100 [000] 1763640001.100005: metric_erlang_reductions: "
                        "0, 0 metric_erlang_message_queue_len: 20, 0 metric_erlang_memory: 400, 0 "
                        ":          1 samples:\n"
                        "\tffffffff did not answer (kprof)\n"
                        "\n");
}

// How often a regular expression matches in a line.
static int matches(const char *expression, const char *line) {
    regex_t r;
    regmatch_t at[4];
    int count = 0;
    assert_int_equal(regcomp(&r, expression, REG_EXTENDED), 0);
    for (; regexec(&r, line, 4, at, 0) == 0; count++) {
        line += at[0].rm_eo;
    }
    regfree(&r);
    return count;
}

static void as_read(void **state) {
    (void)state;
    keep_usual();
    char *text = strdup(written("--profile 1")), *rest = text;
    int heads = 0, frames = 0, metrics = 0;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (line[0] == '\t') { // FlameScope's frames, stackcollapse-perf.pl's
            assert_int_equal(matches("^[\t ]*[0-9a-fA-F]+ (.+) \\((.*)\\)$", line), 1);
            assert_int_equal(
                matches("^[[:space:]]*([[:alnum:]_]+)[[:space:]]*(.+) \\((.*)\\)", line), 1);
            frames++;
        } else if (line[0]) { // their heads, and the metrics of FlameScope's fork
            assert_int_equal(matches(" +[0-9.]+: .+:", line), 1);
            assert_int_equal(matches("^[^ ]*[0-9]", line), 0); // it would be cut there
            assert_int_equal(matches("^([^ ].*)[[:space:]]+([0-9]+)/*([0-9]+)*[[:space:]]+", line),
                             1);
            assert_int_equal(
                matches(":[[:space:]]*([0-9]+)*[[:space:]]+([^ ]+):[[:space:]]*$", line), 1);
            metrics += matches("metric_[^:]+:[\t ]-?[0-9.]+[\t ]*,[\t ]*-?[0-9.]+", line);
            heads++;
        }
    }
    assert_int_equal(heads, 5);
    assert_int_equal(frames, 9);
    assert_int_equal(metrics, 3 + 2 + 3 + 2 + 3);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exactly, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(as_read, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
