// SPDX-License-Identifier: Apache-2.0
// For tests of the kprof command: running it on the fixture's database, and what it writes.
#pragma once

#include "store_fixture.h"

#include <sys/wait.h>

// What the tool wrote, both streams.
static char output[1 << 18];

// Runs kprof in an environment ("LC_ALL=C"), returns how it ended.
static inline int tool_run(const char *environment, const char *arguments) {
    char command[1024];
    snprintf(command, sizeof command, "%s %s %s 2>&1", environment, KPROF_TOOL, arguments);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    size_t n = fread(output, 1, sizeof output - 1, p);
    output[n] = 0;
    int status = pclose(p);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

// Runs one of its commands on the database.
static inline int tool_ask(const char *command, const char *arguments) {
    char line[600];
    snprintf(line, sizeof line, "%s --db %s %s", command, fixture_db, arguments);
    return tool_run("LC_ALL=C", line);
}

static inline void expect_output(const char *expected) {
    if (strcmp(output, expected) != 0) {
        fail_msg("got\n%s\nexpected\n%s", output, expected);
    }
}

static inline void expect_part(const char *part) {
    if (!strstr(output, part)) {
        fail_msg("got\n%s\nwhich lacks\n%s", output, part);
    }
}

static inline void expect_no_part(const char *part) {
    if (strstr(output, part)) {
        fail_msg("got\n%s\nwhich has\n%s", output, part);
    }
}

// One line, and nothing that steers a terminal.
static inline void expect_line(const char *part) {
    expect_part(part);
    char *end = strchr(output, '\n');
    assert_non_null(end);
    assert_int_equal(end[1], 0);
}

// What SQLite's JSON functions find in the output.
static inline void expect_json(const char *path, const char *expected) {
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    sqlite3_prepare_v2(db, "SELECT json_extract(?1, ?2)", -1, &statement, NULL);
    sqlite3_bind_text(statement, 1, output, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, path, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_ROW) {
        fail_msg("no JSON: %s", output);
    }
    const char *text = (const char *)sqlite3_column_text(statement, 0);
    if (!text || strcmp(text, expected) != 0) {
        fail_msg("%s is %s, expected %s, in\n%s", path, text ? text : "NULL", expected, output);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
}
