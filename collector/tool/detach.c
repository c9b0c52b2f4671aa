// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/attach/attach.h"
#include "tool/command.h"
#include "tool/node.h"

enum { NOTHING = 1 };

const char detach_help[] =
    "usage: kprof detach NODE [--cookie-file FILE]\n"
    "\n"
    "Takes out of the node NODE what kprof attach brought in, on whatever host that runs or ran.\n"
    "A kprof attach that still runs ends.\n"
    "\n"
    "  --cookie-file FILE  a file with the node's cookie (default: ~/.erlang.cookie), which\n"
    "                      others may not write and should not read\n"
    "\n"
    "Exit status: 0 done, 1 there was nothing to take out, or something else, 2 wrong usage,\n"
    "3 the node is not up, 4 wrong cookie, or no cookie file, 5 the node's OTP is older than 25,\n"
    "9 traced by others than kprof attach.\n";

static int detach(const struct dist_name *name, const char *cookie) {
    struct dist_node node;
    char shown[NODE_TEXT_BYTES];
    struct shim_told told;
    struct dist_error e;
    if (!dist_node_connect(&node, name, attach_own_name(), cookie, ATTACH_CONNECT_MS, &e)) {
        return command_fail("detach", (int)e.status, "%s", e.text);
    }
    bool good = shim_leave(&node, false, &told, &e);
    dist_node_disconnect(&node);
    if (!good) {
        return command_fail("detach", (int)e.status, "%s", e.text);
    }
    if (strcmp(told.line, "nothing") == 0) {
        return command_fail("detach", NOTHING,
                            "there is nothing of kprof in %s that could be taken out",
                            node.name.full);
    }
    printf("kprof is out of %s\n", node_short(node.name.full, shown));
    return EXIT_SUCCESS;
}

static int take_cookie_file(void *to, int option, const char *value) {
    const char **cookie_file = to;
    (void)option;
    *cookie_file = value;
    return EXIT_SUCCESS;
}

int detach_main(int argc, char **argv) {
    static const struct option options[] = {{"cookie-file", required_argument, NULL, 'k'},
                                            {NULL, 0, NULL, 0}};
    const char *cookie_file = NULL;
    char cookie[COOKIE_BYTES];
    struct dist_name name;
    int status = command_options(argc, argv, options, take_cookie_file, &cookie_file);
    status = status == EXIT_SUCCESS ? attach_one_node(argc, argv) : status;
    status = status == EXIT_SUCCESS
                 ? attach_read_node("detach", argv[optind], cookie_file, &name, cookie, NULL)
                 : status;
    status = status == EXIT_SUCCESS ? detach(&name, cookie) : status;
    explicit_bzero(cookie, sizeof cookie);
    return status;
}
