// SPDX-License-Identifier: Apache-2.0
#include "tool/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tool/command.h"

enum { WIDTH = 100, HEIGHT = 24, MOST = 1000 };

// What the terminal says, or else the environment, or else a usual size.
static uint32_t size_of(int64_t told, const char *variable, int64_t usual) {
    if (told <= 0 && (!getenv(variable) || !command_number(getenv(variable), MOST, &told))) {
        told = usual;
    }
    return (uint32_t)(told > MOST ? MOST : told);
}

uint32_t terminal_width(void) {
    struct winsize size = {0};
    if (!isatty(STDOUT_FILENO)) {
        return WIDTH;
    }
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); // 0 when it fails
    return size_of(size.ws_col, "COLUMNS", WIDTH);
}

uint32_t terminal_height(void) {
    struct winsize size = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return size_of(size.ws_row, "LINES", HEIGHT);
}

bool terminal_draws(void) {
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

bool terminal_colour(void) {
    const char *no = getenv("NO_COLOR");
    return terminal_draws() && !(no && *no);
}

bool terminal_utf8(void) {
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = locale && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    if (locale) {
        freelocale(locale);
    }
    return utf8;
}

static struct termios found;
static volatile sig_atomic_t changed;

bool terminal_keys_begin(void) {
    struct termios keys;
    if (tcgetpgrp(STDIN_FILENO) != getpgrp() || tcgetattr(STDIN_FILENO, &found) != 0) {
        return false;
    }
    keys = found;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO); // Ctrl-C and Ctrl-Z stay what they are
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    changed = 1;
    return tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

void terminal_keys_end(void) {
    int before = errno;
    if (changed) {
        tcsetattr(STDIN_FILENO, TCSANOW, &found);
        changed = 0;
    }
    errno = before;
}

char terminal_key(void) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char key = 0;
    return changed && poll(&in, 1, 0) == 1 && read(STDIN_FILENO, &key, 1) == 1 ? key : 0;
}
