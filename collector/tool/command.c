// SPDX-License-Identifier: Apache-2.0
#include "tool/command.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/text_time.h"
#include "tool/text.h"

enum {
    SECOND_NS = 1000000000,
    MOST_ONE_IN = 1 << 30, // what the shim takes (shim/src/guard/kprof_sampling.erl)
    MOST_PER_SECOND = 1000000
};

// Tells what getopt_long just refused.
static int bad_option(char **argv, int option) {
    const char *arg = argv[optind - 1];
    char letter[3] = {'-', (char)optopt, 0};
    if (optopt != 0 && strncmp(arg, "--", 2) != 0) {
        arg = letter; // inside a word of several letters getopt has not stepped on yet
    }
    if (option == '?' && optopt != 0 && strchr(arg, '=')) {
        fprintf(stderr, "kprof %s: %.*s takes no value; kprof %s --help tells more\n", argv[0],
                (int)strcspn(arg, "="), arg, argv[0]);
    } else if (option == ':') {
        fprintf(stderr, "kprof %s: %s needs a value; kprof %s --help tells more\n", argv[0], arg,
                argv[0]);
    } else {
        fprintf(stderr, "kprof %s: unknown option %s; kprof %s --help lists them\n", argv[0], arg,
                argv[0]);
    }
    return EXIT_USAGE;
}

int command_options(int argc, char **argv, const struct option *options,
                    int (*take)(void *to, int option, const char *value), void *to) {
    int status = EXIT_SUCCESS;
    opterr = 0;
    optind = 0; // glibc: start over, also when another command line was parsed in this process
    for (int o;
         status == EXIT_SUCCESS && (o = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        status = o == '?' || o == ':' ? bad_option(argv, o) : take(to, o, optarg);
    }
    return status;
}

int command_at_most(int argc, char **argv, int most) {
    return optind + most >= argc
               ? EXIT_SUCCESS
               : command_fail(argv[0], EXIT_USAGE,
                              "unexpected argument '%s'; kprof %s --help tells more",
                              argv[optind + most], argv[0]);
}

int command_fail(const char *command, int status, const char *format, ...) {
    struct buffer line = buffer_make(4096);
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_clean(text); // file and node names come from elsewhere
    buffer_printf(&line, "kprof %s: %s\n", command, text);
    fwrite(line.data, 1, line.len, stderr);
    buffer_free(&line);
    return status;
}

int command_database(const char *command, const char *db) {
    return db ? EXIT_SUCCESS
              : command_fail(command, EXIT_USAGE,
                             "which database? Say --db FILE, the file that kprof-collector writes");
}

int command_write(const char *command, const char *name, const struct buffer *bytes) {
    FILE *f = bytes->failed ? NULL : fopen(name, "wb");
    if (bytes->failed) {
        return command_fail(command, EXIT_FAILURE, "no memory for %s", name);
    }
    bool ok = f && (bytes->len == 0 || fwrite(bytes->data, 1, bytes->len, f) == bytes->len);
    ok = f && fclose(f) == 0 && ok;
    return ok ? EXIT_SUCCESS
              : command_fail(command, EXIT_FAILURE, "cannot write %s: %s", name, strerror(errno));
}

int command_print(const char *command, struct buffer *out) {
    int status = EXIT_SUCCESS;
    if (out->failed) {
        status = command_fail(command, EXIT_FAILURE, "no memory");
    } else if (out->len > 0) {
        fwrite(out->data, 1, out->len, stdout);
    }
    buffer_free(out);
    return status;
}

int command_time(const char *command, const char *option, const char *text, bool up, int64_t *s) {
    int64_t ns;
    if (!text_time_parse(text, clock_wall(), &ns)) {
        return command_fail(
            command, EXIT_USAGE,
            "--%s %s is no time: say 30m, 12:00, \"yesterday 14:30\" or 2026-11-20T10:00Z", option,
            text);
    }
    *s = ns / SECOND_NS - (ns % SECOND_NS < 0) + (up && ns % SECOND_NS != 0);
    return EXIT_SUCCESS;
}

int command_offset(const char *command, const char *option, const char *text, uint64_t *us) {
    int64_t ns = 0;
    if (!text_duration_parse(text, &ns)) {
        return command_fail(command, EXIT_USAGE, "--%s %s is no length such as 12s", option, text);
    }
    *us = (uint64_t)ns / 1000;
    return EXIT_SUCCESS;
}

int command_stretch(const char *command, const char *option, const char *text, int64_t *from_s,
                    int64_t *until_s) {
    char from[64];
    const char *dots = strstr(text, "..");
    if (!dots || (size_t)(dots - text) >= sizeof from) {
        return command_fail(command, EXIT_USAGE, "--%s %s is not FROM..UNTIL", option, text);
    }
    snprintf(from, sizeof from, "%.*s", (int)(dots - text), text);
    int status = command_time(command, option, from, false, from_s);
    status =
        status == EXIT_SUCCESS ? command_time(command, option, dots + 2, true, until_s) : status;
    return status != EXIT_SUCCESS || *from_s < *until_s
               ? status
               : command_fail(command, EXIT_USAGE, "--%s %s: it ends before it begins", option,
                              text);
}

int command_range(const char *command, int64_t since_s, int64_t until_s) {
    return since_s < until_s ? EXIT_SUCCESS
                             : command_fail(command, EXIT_USAGE, "--since is not before --until");
}

bool command_number(const char *text, int64_t most, int64_t *n) {
    char *end;
    if (strspn(text, "0123456789") != strlen(text)) {
        return false;
    }
    errno = 0;
    *n = strtoll(text, &end, 10);
    return errno == 0 && end != text && *n >= 1 && *n <= most;
}

bool command_sampling(const char *text, struct command_sampling *out) {
    char digits[16];
    size_t len = strlen(text);
    bool rate = len > 2 && strcmp(text + len - 2, "/s") == 0;
    *out = (struct command_sampling){0};
    snprintf(digits, sizeof digits, "%.*s", (int)(rate ? len - 2 : len), text);
    return len < sizeof digits && (rate ? command_number(digits, MOST_PER_SECOND, &out->per_second)
                                        : command_number(digits, MOST_ONE_IN, &out->one_in));
}
