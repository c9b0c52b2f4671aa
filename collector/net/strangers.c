#include <string.h>

#include "base/log.h"
#include "internal.h"

enum { LOG_LINES_PER_SECOND = 5 };

void strangers_log(struct server *s, const char *peer, const char *why) {
    if (s->refusals++ < LOG_LINES_PER_SECOND) {
        log_warning("connection from %s refused: %s", peer, why);
    }
}

void strangers_count(struct server *s) {
    if (s->refusals > LOG_LINES_PER_SECOND) {
        log_warning("%u more connections refused within a second; their lines are suppressed", s->refusals - LOG_LINES_PER_SECOND);
    }
    s->refusals = 0;
}

const char *strangers_describe(struct slice bytes) {
    static const char *const http[] = {"GET ", "POST", "HEAD", "PUT ", "OPTI", "DELE", "PATC", "CONN"};
    for (size_t i = 0; i < sizeof http / sizeof *http; i++) {
        if (bytes.len >= 4 && memcmp(bytes.data, http[i], 4) == 0) {
            return "an HTTP request; this port speaks to kprof's shim only";
        }
    }
    if (bytes.len >= 2 && bytes.data[0] == 0x16 && bytes.data[1] == 0x03) {
        return "a TLS handshake; this collector was started without --tls-cert";
    }
    return "not the protocol of kprof's shim";
}
