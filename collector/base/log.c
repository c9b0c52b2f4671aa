#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static enum log_level least = LOG_INFO;
static bool to_journal;

void log_set_level(enum log_level level) {
    least = level;
}

void log_start(void) {
    const char *stream = getenv("JOURNAL_STREAM"); // systemd.exec(5): inherited, also by those whose stderr is another
    struct stat st;
    char ours[64];
    to_journal = stream && fstat(STDERR_FILENO, &st) == 0 &&
                 snprintf(ours, sizeof ours, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino) > 0 && strcmp(stream, ours) == 0;
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
    unsigned char before = 0;
    for (char *c = text; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        // U+0080 to U+009F steer a terminal too: as UTF-8 (behind C2) and as lone bytes
        bool c1 = byte >= 0x80 && byte < 0xa0 && (before < 0x80 || before == 0xc2);
        if (byte < ' ' || byte == 0x7f || c1) {
            *c = '?';
        }
        before = byte;
    }
    if (to_journal) {
        static const int priorities[] = {7, 6, 4, 3}; // sd-daemon(3)
        fprintf(stderr, "<%d>%s\n", priorities[level], text);
        return;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm utc;
    gmtime_r(&now.tv_sec, &utc);
    char when[32];
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    fprintf(stderr, "%s.%03ldZ %s %s\n", when, now.tv_nsec / 1000000, names[level], text);
}
