// SPDX-License-Identifier: Apache-2.0
#include "export/export.h"

#include <getopt.h>
#include <stdio.h>

#include "tool/command.h"

enum { OUTPUT_BYTES = 1 << 20 };

const char export_help[] =
    "usage: kprof export --schema [--database NAME] [--old]\n"
    "\n"
    "Prints the statements that make the database and the tables that kprof-collector --export\n"
    "fills, for ClickHouse. The collector makes them itself where it may; where it may not, feed\n"
    "them to clickhouse-client --multiquery as a user who may.\n"
    "\n"
    "  --schema                prints them\n"
    "  --database NAME         the database (default: kprof)\n"
    "  --old                   for ClickHouse before 20, without LowCardinality and TTL: there the\n"
    "                          collector drops partitions that are past their time\n"
    "\n"
    "Exit status: 0, 1 when the output cannot be written, 2 when the command line is wrong.\n";

struct options {
    const char *database;
    bool schema, old;
};

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    if (option == 's') {
        o->schema = true;
    } else if (option == 'o') {
        o->old = true;
    } else {
        o->database = value;
    }
    return EXIT_SUCCESS;
}

int export_main(int argc, char **argv) {
    static const struct option options[] = {{"schema", no_argument, NULL, 's'},
                                            {"old", no_argument, NULL, 'o'},
                                            {"database", required_argument, NULL, 'd'},
                                            {NULL, 0, NULL, 0}};
    struct options o = {.database = "kprof"};
    int status = command_options(argc, argv, options, take, &o);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 0) : status;
    if (status != EXIT_SUCCESS) {
        return status;
    }
    if (!o.schema) {
        return command_fail("export", EXIT_USAGE, "--schema is missing");
    }
    if (!export_database_valid(o.database)) {
        return command_fail("export", EXIT_USAGE,
                            "--database: want 1 to 64 letters, digits or _, a letter or _ first");
    }
    struct buffer out = buffer_make(OUTPUT_BYTES);
    export_schema(o.database, o.old, &out);
    return command_print("export", &out);
}
