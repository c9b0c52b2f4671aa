// SPDX-License-Identifier: Apache-2.0
#include "net/strangers.h"

#include <string.h>

#include "base/log.h"

void strangers_log(const char *peer, const char *why) {
    log_warning("connection from %s refused: %s", peer, why);
}

const char *strangers_describe(struct slice bytes) {
    static const char *const http[] = {"GET ", "POST", "HEAD", "PUT ",
                                       "OPTI", "DELE", "PATC", "CONN"};
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
