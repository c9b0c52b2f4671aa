// SPDX-License-Identifier: Apache-2.0
#include "tool/around.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/command.h"
#include "tool/text.h"

enum { ATTACH_MS = 60000, END_MS = 60000 };

static const char running[] = "running a collector at ", tracing[] = "tracing ";

// -- which collector ------------------------------------------------------------------------------

// Whether this host has that file: what the collector says of another host's is nothing to us.
static bool is_here(const char *database) {
    struct stat st;
    return database[0] == '/' && stat(database, &st) == 0 && S_ISREG(st.st_mode);
}

static int ask_nodes(const struct around_options *o, struct client *c,
                     struct collector_seen *seen) {
    struct node_row *rows = calloc(LIMIT_NODES, sizeof *rows);
    struct nodes_collector of = {0};
    uint32_t count = 0;
    int status = rows ? nodes_ask(o->command, c, rows, &count, &of)
                      : command_fail(o->command, EXIT_FAILURE, "no memory");
    for (uint32_t i = 0; i < count; i++) {
        seen->traced = seen->traced || (rows[i].connected && node_meant(rows[i].node, o->node));
    }
    snprintf(seen->database, sizeof seen->database, "%s", is_here(of.database) ? of.database : "");
    free(rows);
    return status;
}

// Where it is `optional` it need not answer.
static int look(const struct around_options *o, const struct reach *given, bool optional,
                struct collector_seen *seen) {
    struct reach reach = *given;
    struct client_error e;
    int status = reach_prepare(o->command, &reach);
    if (status == EXIT_SUCCESS) {
        struct client *c = client_open(&reach.to, &e);
        seen->there = c || e.fault != CLIENT_ABSENT;
        if (c) {
            status = ask_nodes(o, c, seen);
        } else if (seen->there || !optional) {
            status = reach_fail(o->command, &reach.to, &e);
        }
        client_close(c);
    }
    reach_close(&reach);
    return status;
}

// A database that is removed in the end; database: its path.
static bool make_scratch(struct around_options *o, char database[NODES_PATH_BYTES]) {
    const char *folder = getenv("TMPDIR");
    o->scratch = malloc(NODES_PATH_BYTES);
    int n = o->scratch ? snprintf(o->scratch, NODES_PATH_BYTES, "%s/kprof.XXXXXX",
                                  folder && *folder ? folder : "/tmp")
                       : -1;
    if (n < 0 || n > NODES_PATH_BYTES - 40 || !mkdtemp(o->scratch)) {
        free(o->scratch);
        o->scratch = NULL;
        return false;
    }
    snprintf(database, NODES_PATH_BYTES, "%.*s/" OWN_DATABASE, NODES_PATH_BYTES - 20, o->scratch);
    return true;
}

static void remove_scratch(char *folder) {
    static const char *const files[] = {"", "-wal", "-shm", "-lock"};
    char path[NODES_PATH_BYTES];
    for (size_t i = 0; folder && i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%.*s/" OWN_DATABASE "%s", NODES_PATH_BYTES - 20, folder,
                 files[i]);
        unlink(path);
    }
    if (folder) {
        rmdir(folder);
    }
    free(folder);
}

int around_settle(struct around_options *o, const struct reach *reach, const char **db,
                  struct collector_seen *seen) {
    bool named = reach->collector || reach->secret_file || reach->tls;
    bool may_run = named || (!*db && !o->listen);
    *seen = (struct collector_seen){0};
    int status = may_run ? look(o, reach, !named, seen) : EXIT_SUCCESS;
    if (status != EXIT_SUCCESS) {
        return status;
    }
    if (seen->there && (named || seen->traced || own_is_here(o->node))) {
        *db = *db || !seen->database[0] ? *db : seen->database;
        if (!named && !o->quiet) {
            fputs("using the collector at " REACH_DEFAULT "\n", stderr);
        }
        return *db || !o->reads
                   ? EXIT_SUCCESS
                   : command_fail(o->command, EXIT_USAGE,
                                  "which database? Say --db FILE, the file that this collector "
                                  "writes");
    }
    if (!*db && o->forgets && !make_scratch(o, seen->database)) {
        return command_fail(o->command, EXIT_FAILURE, "cannot make a folder for a database: %s",
                            strerror(errno));
    }
    *db = *db ? *db : o->scratch ? seen->database : OWN_DATABASE;
    o->db = *db;
    return EXIT_SUCCESS;
}

// -- its command line -----------------------------------------------------------------------------

int around_take(struct around_options *o, const char *name, const char *value) {
    enum { MORE = 20 }; // room for those that say which collector
    if (o->argument_count + 2 > AROUND_ARGUMENTS - MORE) {
        return command_fail(o->command, EXIT_USAGE, "%s: too many of these", name);
    }
    o->arguments[o->argument_count++] = name;
    if (value) {
        o->arguments[o->argument_count++] = value;
    }
    return EXIT_SUCCESS;
}

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

// What kprof attach says in its own name, without that; NULL: it is none of that.
static const char *its_own(const char *line) {
    static const char name[] = "kprof attach: ";
    return strncmp(line, name, sizeof name - 1) == 0 ? line + sizeof name - 1 : NULL;
}

// In the name of the command that people know of. Clean: it is meant for a terminal.
static void tell(const struct around_options *o, const char *line) {
    const char *own = its_own(line);
    if (own && !o->quiet) {
        fprintf(stderr, "kprof %s: %s\n", o->command, own);
    } else if (*line && !o->quiet) {
        fprintf(stderr, "%s\n", line);
    }
}

// Says why kprof attach has ended, or waits for something.
static int failed(struct around *a, const char *line) {
    bool gone = child_gone(&a->attach);
    const char *text = its_own(line) ? its_own(line) : line;
    if (gone && a->attach.status == EXIT_NODE_BUSY) {
        return command_fail(a->command, EXIT_NODE_BUSY,
                            "%s; or name the collector that it is connected to with --collector",
                            text);
    }
    return command_fail(a->command, gone && a->attach.status ? a->attach.status : EXIT_FAILURE,
                        "%s", *text ? text : "kprof attach does not get into the node");
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
    a->command = o->command;
    a->scratch = o->scratch;
    if (o->db && !own_secret_make(&a->secret)) {
        return command_fail(a->command, EXIT_FAILURE, "cannot make a secret: %s", strerror(errno));
    }
    return start(a, o, reach) ? follow(a, o, reach)
                              : command_fail(a->command, EXIT_FAILURE,
                                             "cannot start kprof attach: %s", strerror(errno));
}

// Says what to do after kprof attach has ended with an error.
static int tell_end(struct around *a, int status) {
    char line[CHILD_LINE_BYTES];
    if (status > 128) {
        return command_fail(a->command, EXIT_FAILURE,
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
    remove_scratch(a->scratch);
    a->scratch = NULL;
    return status;
}
