// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"

enum { TEXT_BYTES = 1024, SAMPLE_BYTES = 200 };

static const int64_t SECOND_NS = 1000000000, MINUTE_NS = 60 * SECOND_NS, SETTLE_NS = 10 * SECOND_NS;

static enum log_level least = LOG_INFO;
static bool to_journal;

// What was written and left out of a kind of line.
struct kind {
    const char *name;          // NULL: free
    struct rate_budget lines;  // of this kind
    struct rate_budget rarely; // those of them that need no room in all
    uint64_t left_out;
    int64_t left_since;
    enum log_level level;      // of the first that was left out,
    char sample[SAMPLE_BYTES]; // and its text
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // protects what follows
static struct kind kinds[LIMIT_LOG_KINDS];
static struct rate_budget in_all;

void log_set_level(enum log_level level) {
    least = level;
}

void log_start(void) {
    const char *stream = getenv(
        "JOURNAL_STREAM"); // systemd.exec(5): inherited, also by those whose stderr is another
    struct stat st;
    char ours[64];
    to_journal =
        stream && fstat(STDERR_FILENO, &st) == 0 &&
        snprintf(ours, sizeof ours, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino) > 0 &&
        strcmp(stream, ours) == 0;
}

static void clean(char *text) {
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
}

static void write_line(enum log_level level, char *text) {
    static const char *const names[] = {"debug", "info", "warning", "error"};
    clean(text);
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

// -- what is left out -----------------------------------------------------------------------------

// The record of a kind; the last one is that of all for which there is none left.
static struct kind *kind_of(const char *name) {
    uint32_t i = 0;
    while (i < LIMIT_LOG_KINDS - 1 && kinds[i].name && kinds[i].name != name) {
        i++;
    }
    kinds[i].name = name;
    return &kinds[i];
}

// Whether one more line may be written, and takes its room.
static bool allowed(struct kind *k, struct rate_budget *source, int64_t now) {
    const int64_t each = MINUTE_NS / LIMIT_LOG_LINES_OF_KIND, all = MINUTE_NS / LIMIT_LOG_LINES,
                  rare = MINUTE_NS / LIMIT_LOG_LINES_RARE;
    bool room = rate_has(&in_all, now, all, LIMIT_LOG_LINES),
         rarely = rate_has(&k->rarely, now, rare, LIMIT_LOG_LINES_RARE);
    if (!rate_has(&k->lines, now, each, LIMIT_LOG_LINES_OF_KIND) || !(room || rarely) ||
        (source && !rate_has(source, now, each, LIMIT_LOG_LINES_OF_KIND))) {
        return false;
    }
    rate_take(&k->lines, now, each);
    if (source) {
        rate_take(source, now, each);
    }
    if (rarely) {
        rate_take(&k->rarely, now, rare);
    }
    if (room) {
        rate_take(&in_all, now, all);
    }
    return true;
}

static void tell_left_out(struct kind *k, int64_t now) {
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "log: %llu more line%s left out in %lld s, like this one: %s",
             (unsigned long long)k->left_out, k->left_out == 1 ? "" : "s",
             (long long)((now - k->left_since + SECOND_NS - 1) / SECOND_NS), k->sample);
    k->left_out = 0;
    write_line(k->level, text);
}

void log_from(const struct log_origin *origin, enum log_level level, const char *format, ...) {
    if (level < least) {
        return;
    }
    int64_t now = clock_monotonic();
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&mutex);
    struct kind *k = kind_of(origin->kind ? origin->kind : format);
    if (allowed(k, origin->source, now)) {
        write_line(level, text);
    } else if (k->left_out++ == 0) {
        k->left_since = now;
        k->level = level;
        snprintf(k->sample, sizeof k->sample, "%.*s", SAMPLE_BYTES - 1, text);
    }
    pthread_mutex_unlock(&mutex);
}

void log_settle(bool all) {
    int64_t now = clock_monotonic();
    pthread_mutex_lock(&mutex);
    for (uint32_t i = 0; i < LIMIT_LOG_KINDS; i++) {
        if (kinds[i].left_out > 0 && (all || now - kinds[i].left_since >= SETTLE_NS)) {
            tell_left_out(&kinds[i], now);
        }
    }
    pthread_mutex_unlock(&mutex);
}
