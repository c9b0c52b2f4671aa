// SPDX-License-Identifier: Apache-2.0
// The log: one line an event on stderr, "time level text", UTC; to systemd's journal, which has
// times of its own, "<priority>text". Control bytes in the text are shown as '?', so that nothing a
// node sends can forge a line or steer a terminal. Any thread may log.
//
// Whatever happens, there are no more than some hundred lines a minute: so many of each kind, of
// each origin, and in all (limits.h). A kind of which there were few gets through when the rest is
// used up. What is left out is counted by kind, and told.
#pragma once

#include "base/rate.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

// Looks whether stderr is the journal's; without it, it is not. Once, before other threads log, and
// when stderr is what it will be.
void log_start(void);
// Lines below this level are left out. Default LOG_INFO.
void log_set_level(enum log_level level);

// What a line is counted by.
struct log_origin {
    // a text that lives as long as the program; lines of one kind have the same one. NULL: the
    // line's format
    const char *kind;
    // of whoever makes us write it, a node for one; used by one thread. NULL: nobody
    struct rate_budget *source;
};

// Prefix and level are not part of the text. At most 1 KiB of text, the rest is cut.
__attribute__((format(printf, 3, 4))) void log_from(const struct log_origin *origin,
                                                    enum log_level level, const char *format, ...);

#define log_line(level, ...) log_from(&(struct log_origin){0}, level, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)

// Tells of what kinds lines were left out, and how many: those of which it was last told ten
// seconds ago or more, or all. Once a second, and at the end.
void log_settle(bool all);
