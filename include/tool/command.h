// The sub-commands of the kprof tool. Each is a function like main: argv[0] is the command's own name, the
// result is the exit status. A command parses its options with getopt_long and has one entry in the table of
// collector/tool/main.c; --help is answered there.
#pragma once

enum {
    EXIT_USAGE = 2 // a wrong option or argument; other failures end with EXIT_FAILURE
};

int report_main(int argc, char **argv);
extern const char report_help[];
int replay_main(int argc, char **argv);
extern const char replay_help[];

// Tells on stderr, in one line, what getopt_long just refused (optopt and argv, with opterr = 0 and an option
// string that starts with ':'), and returns EXIT_USAGE.
int command_bad_option(char **argv, int option);
