// SPDX-License-Identifier: Apache-2.0
// The sub-commands of the kprof tool. Each is a function like main: argv[0] is the command's own
// name, the result is the exit status. A command parses its options with getopt_long and has one
// entry in the table of collector/tool/main.c; --help is answered there.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/exit_status.h"

int report_main(int argc, char **argv);
extern const char report_help[];
int diff_main(int argc, char **argv);
extern const char diff_help[];
int slow_main(int argc, char **argv);
extern const char slow_help[];
int flame_main(int argc, char **argv);
int sample_main(int argc, char **argv);
int top_main(int argc, char **argv);
int heat_main(int argc, char **argv);
extern const char sample_help[], flame_help[], top_help[], heat_help[];
int profiles_main(int argc, char **argv);
extern const char profiles_help[];
int serve_main(int argc, char **argv);
extern const char serve_help[];
int suggest_main(int argc, char **argv);
extern const char suggest_help[];
int attach_main(int argc, char **argv);
extern const char attach_help[];
int detach_main(int argc, char **argv);
extern const char detach_help[];
int replay_main(int argc, char **argv);
extern const char replay_help[];
int doctor_main(int argc, char **argv);
extern const char doctor_help[];

int nodes_main(int argc, char **argv);
extern const char nodes_help[];
int trace_main(int argc, char **argv);
extern const char trace_help[];
int trigger_main(int argc, char **argv);
extern const char trigger_help[];
int note_main(int argc, char **argv);
extern const char note_help[];
int export_main(int argc, char **argv);
extern const char export_help[];

// Reads a command's options with getopt_long: take gets each one's value of the table, and what was
// given to it, and returns an exit status. EXIT_SUCCESS, and optind stands at the first argument
// that is no option (they have been put behind); or the first other status, an unknown option's
// EXIT_USAGE among them: it has been told on stderr, in one line.
struct option;
int command_options(int argc, char **argv, const struct option *options,
                    int (*take)(void *to, int option, const char *value), void *to);

// After command_options: whether no more than `most` arguments are left that are no options.
// EXIT_SUCCESS, or EXIT_USAGE and has told of the first one too many.
int command_at_most(int argc, char **argv, int most);

// Tells one line on stderr, "kprof COMMAND: …", without what could steer a terminal, and returns
// status.
__attribute__((format(printf, 3, 4))) int command_fail(const char *command, int status,
                                                       const char *format, ...);

// Whether a database was named with --db. EXIT_SUCCESS, or EXIT_USAGE and has told of it.
int command_database(const char *command, const char *db);

// Prints what a command has to say on stdout, and frees it. EXIT_SUCCESS; or EXIT_FAILURE without
// memory: it has told so, and printed nothing.
struct buffer;
int command_print(const char *command, struct buffer *out);

// Writes a file. EXIT_SUCCESS, or EXIT_FAILURE and has told why not.
int command_write(const char *command, const char *name, const struct buffer *bytes);

// Reads the value of --since or --until into whole seconds: down for a range's begin, up for its
// end. Returns EXIT_SUCCESS, or EXIT_USAGE and has told why.
int command_time(const char *command, const char *option, const char *text, bool up, int64_t *s);

// Reads a time from a profile's begin on, such as 12s, into µs. Likewise.
int command_offset(const char *command, const char *option, const char *text, uint64_t *us);

// Reads the value FROM..UNTIL of an option, as two times of command_time, the first before the
// second. Likewise.
int command_stretch(const char *command, const char *option, const char *text, int64_t *from_s,
                    int64_t *until_s);

// Whether --since is before --until. EXIT_SUCCESS, or EXIT_USAGE and has told that it is not.
int command_range(const char *command, int64_t since_s, int64_t until_s);

// Reads a whole number of at least one digit and nothing else, from 1 to most. False otherwise.
bool command_number(const char *text, int64_t most, int64_t *n);

// How many requests are to be traced: one in so many, or so many a second at most. One of the two
// is 0.
struct command_sampling {
    int64_t one_in, per_second;
};

// What is wanted, for errors.
#define COMMAND_SAMPLING                                                                           \
    "a number N from 1 to 1073741824, for one request in N, or R/s, R from 1 to 1000000, "         \
    "for at most R requests a second"

// Reads N or R/s. False when it is neither.
bool command_sampling(const char *text, struct command_sampling *out);
