// SPDX-License-Identifier: Apache-2.0
// Where a command reads the history from: the file of a collector (--db), or what collectors have
// exported to ClickHouse (--from).
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "store/store.h"

struct source {
    const char *db, *from; // one of them
    const char *password_file, *ca;
    char clusters[2048], collectors[2048]; // choices (store/query.h); empty: all
    bool too_many;                         // of these
    char name[400];                        // for messages; set by source_check
};

// Entries of a getopt_long table, and lines of a help text.
enum {
    SOURCE_DB = 'd',
    SOURCE_FROM = 256,
    SOURCE_PASSWORD,
    SOURCE_CA,
    SOURCE_CLUSTER,
    SOURCE_COLLECTOR
};
#define SOURCE_OPTIONS                                                                             \
    {"db", required_argument, NULL, SOURCE_DB}, {"from", required_argument, NULL, SOURCE_FROM},    \
        {"from-password-file", required_argument, NULL, SOURCE_PASSWORD},                          \
        {"from-ca", required_argument, NULL, SOURCE_CA},                                           \
        {"from-cluster", required_argument, NULL, SOURCE_CLUSTER}, {                               \
        "from-collector", required_argument, NULL, SOURCE_COLLECTOR                                \
    }
#define SOURCE_HELP                                                                                  \
    "Instead of --db FILE, what collectors have exported (kprof-collector --export):\n"              \
    "  --from URL      ClickHouse, at clickhouse[s]://[USER@]HOST[:PORT]/DATABASE\n"                 \
    "  --from-password-file FILE  the user's password\n"                                             \
    "  --from-ca FILE  the engine's certificate is from the authorities in FILE, not from the\n"     \
    "                  system's\n"                                                                   \
    "  --from-cluster NAME  only collectors of this cluster (--export-label cluster=NAME); may be\n" \
    "                  given several times, and so may\n"                                            \
    "  --from-collector NAME  only this collector (--export-as NAME)\n"

// Takes an option of the table. False: it is none of these.
bool source_take(struct source *s, int option, const char *value);
// Whether the options go together. EXIT_SUCCESS, or EXIT_USAGE and has told of it.
int source_check(const char *command, struct source *s);
// Opens it. EXIT_SUCCESS, and the store is the caller's; else it has told why not.
int source_open(const char *command, const struct source *s, struct store **store);
// Opens it; blocks. Any thread.
enum store_status source_open_store(const struct source *s, struct store **store,
                                    char error[STORE_ERROR_BYTES]);
// " --db FILE" or " --from URL", as it was given.
void source_again(const struct source *s, struct buffer *out);
