// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <stdio.h>

#include "tool/command.h"
#include "tool/flame/print.h"
#include "tool/node.h"

enum { OUTPUT_BYTES = 64 << 20, LIST = 20, LIST_MOST = 100000 };

const char profiles_help[] =
    "usage: kprof profiles --db FILE [OPTIONS]\n"
    "\n"
    "Lists the profiles that were kept, the latest first. kprof flame --profile ID draws one.\n"
    "\n"
    "  --db FILE       the database that kprof-collector writes\n"
    "  --since TIME    profiles that ended from this time on: a length back from now such as 30m,\n"
    "                  12h or 2d, or a time such as 12:00, \"yesterday 14:30\", \"2026-11-20 10:00\"\n"
    "                  (local time) or 2026-11-20T10:00Z (UTC; default: all there are)\n"
    "  --until TIME    up to this time (default: now)\n"
    "  --node NAME     only of this node; as much of a name as tells it from the others\n"
    "  --limit N       this many at most (default: 20)\n"
    "  --json          one JSON object: profiles, a list with the columns of the view profiles;\n"
    "                  looks, how many a profile of samples has; and missed, the processes that each\n"
    "                  was not followed into: pid, name, requests\n"
    "\n"
    "Exit status: 0, 1 when there are none or no database, 2 when the command line is wrong.\n";

struct options {
    const char *db;
    struct profile_filter filter;
    bool json;
};

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    int64_t n = LIST;
    switch (option) {
    case 'd':
        o->db = value;
        break;
    case 'j':
        o->json = true;
        break;
    case 's':
        return command_time("profiles", "since", value, false, &o->filter.from_s);
    case 'u':
        return command_time("profiles", "until", value, true, &o->filter.until_s);
    case 'n':
        o->filter.node = value;
        break;
    default:
        if (!command_number(value, LIST_MOST, &n)) {
            return command_fail("profiles", EXIT_USAGE, "--limit %s is no number from 1 to %d",
                                value, LIST_MOST);
        }
        o->filter.most = (uint32_t)n;
    }
    return EXIT_SUCCESS;
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        {"db", required_argument, NULL, 'd'},
        {"since", required_argument, NULL, 's'},
        {"until", required_argument, NULL, 'u'},
        {"node", required_argument, NULL, 'n'},
        {"limit", required_argument, NULL, 'l'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    *o = (struct options){.filter = {.from_s = INT64_MIN, .until_s = INT64_MAX, .most = LIST}};
    int status = command_options(argc, argv, options, take, o);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 0) : status;
    status = status == EXIT_SUCCESS ? command_database("profiles", o->db) : status;
    return status == EXIT_SUCCESS ? command_range("profiles", o->filter.from_s, o->filter.until_s)
                                  : status;
}

static int show(struct store *store, const struct options *o) {
    struct profile_list list;
    struct buffer out = buffer_make(OUTPUT_BYTES);
    int status = EXIT_SUCCESS;
    if (!query_profiles(store, &o->filter, &list)) {
        status = command_fail("profiles", EXIT_FAILURE, "cannot read %s (%s)", o->db,
                              store_error(store));
    } else {
        flame_clean_list(&list);
        if (o->json) {
            flame_list_json(&list, &out);
        } else if (list.count > 0) {
            flame_list_table(&list, &out);
        }
        status = command_print("profiles", &out);
        if (status == EXIT_SUCCESS && list.count == 0) {
            status = command_fail("profiles", EXIT_FAILURE,
                                  "%s keeps no profile%s; kprof flame NODE makes one", o->db,
                                  o->filter.node ? " of that node" : "");
        }
    }
    profile_list_free(&list);
    return status;
}

int profiles_main(int argc, char **argv) {
    struct options o;
    struct store *store;
    char node[NODE_TEXT_BYTES];
    int status = parse(argc, argv, &o);
    status = status == EXIT_SUCCESS
                 ? node_open("profiles", &(struct source){.db = o.db}, &o.filter.node, node, &store)
                 : status;
    if (status == EXIT_SUCCESS) {
        status = show(store, &o);
        store_close(store);
    }
    return status;
}
