#include "tool/command.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

int command_bad_option(char **argv, int option) {
    const char *arg = argv[optind - 1];
    char letter[3] = {'-', (char)optopt, 0};
    if (optopt != 0 && strncmp(arg, "--", 2) != 0) {
        arg = letter; // inside a word of several letters getopt has not stepped on yet
    }
    if (option == ':') {
        fprintf(stderr, "kprof %s: %s needs a value; kprof %s --help tells more\n", argv[0], arg, argv[0]);
    } else {
        fprintf(stderr, "kprof %s: unknown option %s; kprof %s --help lists them\n", argv[0], arg, argv[0]);
    }
    return EXIT_USAGE;
}
