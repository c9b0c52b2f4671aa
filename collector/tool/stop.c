// SPDX-License-Identifier: Apache-2.0
#include "tool/stop.h"

#include <signal.h>
#include <unistd.h>

#include "tool/terminal.h"

static volatile sig_atomic_t stops; // how often

static void on_stop(int number) {
    if (++stops > 1) {
        terminal_keys_end();
        _exit(128 + number);
    }
}

void stop_catch(void) {
    struct sigaction stop = {.sa_handler = on_stop};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
}

bool stop_wanted(void) {
    return stops > 0;
}
