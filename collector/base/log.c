#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static enum log_level least = LOG_INFO;

void log_set_level(enum log_level level) {
    least = level;
}

void log_line(enum log_level level, const char *format, ...) {
    static const char *const names[] = {"debug", "info", "warning", "error"};
    if (level < least) {
        return;
    }
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f) {
            *c = '?';
        }
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm utc;
    gmtime_r(&now.tv_sec, &utc);
    char when[32];
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    fprintf(stderr, "%s.%03ldZ %s %s\n", when, now.tv_nsec / 1000000, names[level], text);
}
