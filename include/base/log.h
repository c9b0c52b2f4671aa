// The log: one line an event on stderr, "time level text", UTC; to systemd's journal, which has times of its own, "<priority>text".
// Control bytes in the text are shown as '?', so that nothing a node sends can forge a line or steer a terminal. Any thread may log.
#pragma once

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

// Looks whether stderr is the journal's; without it, it is not. Once, before other threads log, and when stderr is what it will be.
void log_start(void);
// Lines below this level are left out. Default LOG_INFO.
void log_set_level(enum log_level level);

// Prefix and level are not part of the text. At most 1 KiB of text, the rest is cut.
__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *format, ...);

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
