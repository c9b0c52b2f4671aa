// SPDX-License-Identifier: Apache-2.0
#include "tool/source.h"

#include <stdio.h>
#include <string.h>

#include "export/export.h"
#include "export/history.h"
#include "net/secret.h"
#include "store/query.h"
#include "tool/command.h"

static void add_choice(struct source *s, char *choice, size_t size, const char *name) {
    size_t len = strlen(choice);
    int n = snprintf(choice + len, size - len, "%s%s", len > 0 ? QUERY_OR : "", name);
    s->too_many = s->too_many || !*name || (size_t)n >= size - len;
}

bool source_take(struct source *s, int option, const char *value) {
    switch (option) {
    case SOURCE_DB:
        s->db = value;
        return true;
    case SOURCE_FROM:
        s->from = value;
        return true;
    case SOURCE_PASSWORD:
        s->password_file = value;
        return true;
    case SOURCE_CA:
        s->ca = value;
        return true;
    case SOURCE_CLUSTER:
        add_choice(s, s->clusters, sizeof s->clusters, value);
        return true;
    case SOURCE_COLLECTOR:
        add_choice(s, s->collectors, sizeof s->collectors, value);
        return true;
    default:
        return false;
    }
}

static int check_from(const char *command, struct source *s) {
    char why[EXPORT_WHY_BYTES];
    // the address itself may have a password in it, and is not repeated
    if (!export_check(s->from, s->password_file, why)) {
        return command_fail(command, EXIT_USAGE, "--from: %s", why);
    }
    if (s->ca && strncmp(s->from, "clickhouses:", strlen("clickhouses:")) != 0) {
        return command_fail(command, EXIT_USAGE,
                            "--from-ca: only with --from clickhouses://, which speaks TLS");
    }
    if (s->too_many) {
        return command_fail(command, EXIT_USAGE,
                            "--from-cluster, --from-collector: want names, 2 KB of them at most");
    }
    history_name(s->from, s->name, sizeof s->name);
    return EXIT_SUCCESS;
}

int source_check(const char *command, struct source *s) {
    if (s->db && s->from) {
        return command_fail(command, EXIT_USAGE, "--db or --from: one of them");
    }
    if (s->from) {
        return check_from(command, s);
    }
    if (s->password_file || s->ca || s->clusters[0] || s->collectors[0]) {
        return command_fail(command, EXIT_USAGE,
                            "--from clickhouse[s]://[USER@]HOST[:PORT]/DATABASE is missing");
    }
    snprintf(s->name, sizeof s->name, "%s", s->db ? s->db : "");
    return command_database(command, s->db);
}

enum store_status source_open_store(const struct source *s, struct store **store,
                                    char error[STORE_ERROR_BYTES]) {
    char why[SECRET_ERROR_BYTES], password[LIMIT_EXPORT_PASSWORD_BYTES + 1] = "";
    *store = NULL;
    if (s->db) {
        return store_open_reader(s->db, store, error);
    }
    if (s->password_file && !secret_read_password(s->password_file, password, why)) {
        snprintf(error, STORE_ERROR_BYTES, "--from-password-file %.*s", STORE_ERROR_BYTES - 32,
                 why);
        return STORE_FAILED;
    }
    const struct history_options options = {.url = s->from,
                                            .password = password[0] ? password : NULL,
                                            .ca = s->ca,
                                            .clusters = s->clusters[0] ? s->clusters : NULL,
                                            .collectors = s->collectors[0] ? s->collectors : NULL};
    enum store_status status = history_open(&options, store, error);
    explicit_bzero(password, sizeof password);
    return status;
}

int source_open(const char *command, const struct source *s, struct store **store) {
    char error[STORE_ERROR_BYTES];
    return source_open_store(s, store, error) == STORE_OK
               ? EXIT_SUCCESS
               : command_fail(command, EXIT_FAILURE, "%s", error);
}

void source_again(const struct source *s, struct buffer *out) {
    buffer_text(out, s->db ? " --db " : " --from ");
    buffer_text(out, s->db ? s->db : s->from);
}
