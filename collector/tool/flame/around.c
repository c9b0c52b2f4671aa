// SPDX-License-Identifier: Apache-2.0
#include "tool/flame/around.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tool/command.h"
#include "tool/text.h"

enum { ATTACH_MS = 60000, END_MS = 60000 };

static const char running[] = "running a collector at ", tracing[] = "tracing ";

// -- its command line -----------------------------------------------------------------------------

static void put(struct around_options *o, const char *name, const char *value) {
    if (value) {
        o->arguments[o->argument_count++] = name;
        o->arguments[o->argument_count++] = value;
    }
}

// Passes on which collector it uses.
static void put_collector(struct around_options *o, const struct around *a, const struct reach *r) {
    bool own = o->db != NULL;
    put(o, "--db", o->db);
    put(o, "--listen", o->listen);
    put(o, "--collector", own ? NULL : r->collector ? r->collector : REACH_DEFAULT);
    put(o, "--secret-file", own ? a->secret.file : r->secret_file);
    put(o, "--tls-ca", r->tls_files.ca);
    put(o, "--tls-cert", r->tls_files.cert);
    put(o, "--tls-key", r->tls_files.key);
    put(o, "--tls-name", r->tls_name);
    if (r->tls) {
        o->arguments[o->argument_count++] = "--tls";
    }
}

static bool start(struct around *a, const struct around_options *o, const struct reach *reach) {
    struct around_options all = *o;
    const char *argv[AROUND_ARGUMENTS + 4] = {"kprof", "attach", o->node};
    put_collector(&all, a, reach);
    memcpy(argv + 3, all.arguments, all.argument_count * sizeof *argv);
    return child_start(&a->attach, argv, a->secret.fd);
}

// -- what it says ---------------------------------------------------------------------------------

static void tell(const struct around_options *o, const char *line) {
    if (*line && !o->quiet) {
        fprintf(stderr, "%s\n", line); // clean: it is meant for a terminal
    }
}

// Says why kprof attach has ended, or waits for something.
static int failed(struct around *a, const char *line) {
    static const char name[] = "kprof attach: ";
    bool gone = child_gone(&a->attach);
    const char *text = strncmp(line, name, sizeof name - 1) == 0 ? line + sizeof name - 1 : line;
    if (gone && a->attach.status == EXIT_NODE_BUSY) {
        return command_fail("flame", EXIT_NODE_BUSY,
                            "%s; or name the collector that it is connected to with --collector",
                            text);
    }
    return command_fail("flame", gone && a->attach.status ? a->attach.status : EXIT_FAILURE, "%s",
                        *text ? text : "kprof attach does not get into the node");
}

// Reads what kprof attach says until it traces.
static int follow(struct around *a, const struct around_options *o, struct reach *reach) {
    char line[CHILD_LINE_BYTES], before[CHILD_LINE_BYTES] = "";
    while (child_line(&a->attach, "", ATTACH_MS, line)) {
        tell(o, before); // the last one may tell why it has ended
        memcpy(before, line, sizeof before);
        if (strncmp(line, running, sizeof running - 1) == 0) {
            const char *at = line + sizeof running - 1;
            snprintf(a->at, sizeof a->at, "%.*s", (int)strcspn(at, ","), at);
            reach->collector = a->at;
            reach->secret_file = a->secret.file;
        } else if (strncmp(line, tracing, sizeof tracing - 1) == 0) {
            tell(o, line);
            a->began = true;
            return EXIT_SUCCESS;
        }
    }
    return failed(a, before);
}

// -- begin and end --------------------------------------------------------------------------------

int around_begin(struct around *a, const struct around_options *o, struct reach *reach) {
    *a = AROUND_NONE;
    if (o->db && !own_secret_make(&a->secret)) {
        return command_fail("flame", EXIT_FAILURE, "cannot make a secret: %s", strerror(errno));
    }
    return start(a, o, reach) ? follow(a, o, reach)
                              : command_fail("flame", EXIT_FAILURE, "cannot start kprof attach: %s",
                                             strerror(errno));
}

// Says what to do after kprof attach has ended with an error.
static int tell_end(struct around *a, int status) {
    char line[CHILD_LINE_BYTES];
    if (status > 128) {
        return command_fail("flame", EXIT_FAILURE,
                            "kprof attach was killed; the node takes kprof out by itself within "
                            "10 s");
    }
    child_last_line(&a->attach, line);
    return failed(a, line);
}

int around_end(struct around *a) {
    int status = child_stop(&a->attach, END_MS); // 0 when there is none
    // an error before it traced has been told already
    status = status == EXIT_SUCCESS || !a->began ? status : tell_end(a, status);
    child_end(&a->attach, 0);
    own_secret_end(&a->secret);
    return status;
}
