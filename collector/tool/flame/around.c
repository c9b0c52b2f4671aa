// SPDX-License-Identifier: Apache-2.0
#include "tool/flame/around.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/command.h"
#include "tool/text.h"

enum { COLLECTOR_MS = 15000, ATTACH_MS = 60000, END_MS = 15000, SECRET_BYTES = 24 };

// A file without a name that holds a new secret.
static bool make_secret(struct around *a) {
    uint8_t bytes[SECRET_BYTES];
    char text[2 * SECRET_BYTES + 1];
    a->secret = memfd_create("secret", MFD_CLOEXEC);
    if (a->secret < 0 || fchmod(a->secret, 0600) != 0 ||
        getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return false;
    }
    for (int i = 0; i < SECRET_BYTES; i++) {
        sprintf(text + 2 * i, "%02x", bytes[i]);
    }
    snprintf(a->secret_file, sizeof a->secret_file, "/proc/self/fd/%d", a->secret);
    return write(a->secret, text, sizeof text - 1) == (ssize_t)sizeof text - 1;
}

static int failed(const char *what, const char *line) {
    char text[CHILD_LINE_BYTES];
    snprintf(text, sizeof text, "%s", line);
    text_clean(text);
    return command_fail("flame", EXIT_FAILURE, "%s: %s", what,
                        text[0] ? text : "it says nothing of why");
}

static int start_collector(struct around *a, const char *db) {
    char line[CHILD_LINE_BYTES], *at, *end;
    if (!make_secret(a)) {
        return command_fail("flame", EXIT_FAILURE, "cannot make a secret: %s", strerror(errno));
    }
    const char *argv[] = {"kprof-collector", "--listen",     "127.0.0.1:0", "--db", db,
                          "--secret-file",   a->secret_file, NULL};
    if (!child_start(&a->collector, argv, a->secret)) {
        return command_fail("flame", EXIT_FAILURE, "cannot start kprof-collector: %s",
                            strerror(errno));
    }
    if (!child_line(&a->collector, " listening on ", COLLECTOR_MS, line)) {
        return failed("the collector does not start", line);
    }
    at = strstr(line, " listening on ") + strlen(" listening on ");
    end = strchr(at, ',');
    snprintf(a->at, sizeof a->at, "%.*s", (int)(end ? end - at : (long)strlen(at)), at);
    return EXIT_SUCCESS;
}

static int start_attach(struct around *a, const struct around_options *o, const char *collector) {
    enum { OWN = 8 };
    const char *argv[AROUND_ARGUMENTS + OWN];
    char line[CHILD_LINE_BYTES];
    uint32_t n = 0;
    argv[n++] = "kprof";
    argv[n++] = "attach";
    argv[n++] = o->node;
    argv[n++] = "--json"; // no live table
    if (collector) {
        argv[n++] = "--collector";
        argv[n++] = collector;
    }
    for (uint32_t i = 0; i < o->argument_count; i++) {
        argv[n++] = o->arguments[i];
    }
    argv[n] = NULL;
    if (!child_start(&a->attach, argv, a->secret)) {
        return command_fail("flame", EXIT_FAILURE, "cannot start kprof attach: %s",
                            strerror(errno));
    }
    return child_line(&a->attach, "tracing ", ATTACH_MS, line)
               ? EXIT_SUCCESS
               : failed("kprof does not get into the node", line);
}

int around_begin(struct around *a, const struct around_options *o, struct reach *reach) {
    struct around_options with = *o;
    int status = EXIT_SUCCESS;
    *a = (struct around){.secret = -1, .collector.said = -1, .attach.said = -1};
    if (o->db) {
        status = start_collector(a, o->db);
        reach->collector = a->at;
        reach->secret_file = a->secret_file;
        with.arguments[with.argument_count++] = "--secret-file";
        with.arguments[with.argument_count++] = a->secret_file;
    }
    if (status == EXIT_SUCCESS && o->argument_count > 0) {
        status = start_attach(a, &with, reach->collector);
    }
    return status;
}

void around_end(struct around *a) {
    child_end(&a->attach, SIGTERM, END_MS);
    child_end(&a->collector, SIGTERM, END_MS);
    if (a->secret >= 0) {
        close(a->secret);
    }
    a->secret = -1;
}
