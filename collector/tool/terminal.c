#include "tool/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool/command.h"

enum { WIDTH = 100, WIDTH_LEAST = 40, HEIGHT = 24, HEIGHT_LEAST = 5, MOST = 1000 };

// What the terminal says, or else the environment, or else a usual size.
static uint32_t size_of(int64_t told, const char *variable, int64_t usual, int64_t least) {
    if (told <= 0 && (!getenv(variable) || !command_number(getenv(variable), MOST, &told))) {
        told = usual;
    }
    return (uint32_t)(told < least ? least : told > MOST ? MOST : told);
}

uint32_t terminal_width(void) {
    struct winsize size = {0};
    if (!isatty(STDOUT_FILENO)) {
        return WIDTH;
    }
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); // 0 when it fails
    return size_of(size.ws_col, "COLUMNS", WIDTH, WIDTH_LEAST);
}

uint32_t terminal_height(void) {
    struct winsize size = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return size_of(size.ws_row, "LINES", HEIGHT, HEIGHT_LEAST);
}
