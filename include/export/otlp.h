// SPDX-License-Identifier: Apache-2.0
// OTLP: a thread that sends kept requests as traces, and the statistics of requests as metrics, to
// a receiver that speaks the OpenTelemetry protocol over HTTP. It follows the database through a
// connection of its own (store/otlp.h), never the flush. What was acknowledged the writer thread
// notes down; what was not is sent again, after whatever. Spans have the same ids each time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/writer.h"

enum { OTLP_WHY_BYTES = 300, OTLP_TO_BYTES = 500 };

struct otlp_options {
    const char *url;     // http[s]://host[:port][/path]
    const char *headers; // lines of "Name: value"; NULL: none
    const char *ca;      // file of authorities; NULL: the system's
    bool signals[OTLP_SIGNALS];
    uint32_t bucket_s;    // length of the finest statistics
    const char *database; // path of the file that the writer writes
};

// Whether an address is one, and headers, which may be secrets, may go there. On false `why` says
// what is wrong and what to do; it never has a password in it.
bool otlp_check(const char *url, bool headers, char why[OTLP_WHY_BYTES]);
// Whether a text is lines of "Name: value", LIMIT_OTLP_HEADERS at most, each of which may be sent.
// On false `why` says which line is not; it never has a value in it.
bool otlp_headers_check(const char *text, char why[OTLP_WHY_BYTES]);

struct otlp; // opaque

// Starts the thread. The options' texts are copied; the writer must outlive it, and its store is to
// be followed (store_otlp_follow). NULL, and `why`, on failure. A receiver that is not there is
// none: that is told in the status and the log.
struct otlp *otlp_start(const struct otlp_options *options, struct writer *writer,
                        char why[OTLP_WHY_BYTES]);
// Has it send other headers from now on (NULL: none), at once where the receiver takes nothing.
// False, and `why` as of otlp_headers_check, where they may not be sent, or there is no memory: all
// stays.
bool otlp_renew(struct otlp *o, const char *headers, char why[OTLP_WHY_BYTES]);
// Ends it and frees it. Where the receiver takes what it is given, what is over is sent first, for
// LIMIT_EXPORT_END_SECONDS at most; the rest is sent by the next one. NULL is allowed.
void otlp_stop(struct otlp *o);

// How it stands.
struct otlp_status {
    char to[OTLP_TO_BYTES]; // host:port/path
    struct otlp_signal_status {
        bool wanted;
        bool sending;                  // the receiver has taken what it was last given
        int64_t behind_s;              // for how long the oldest waits that is due; 0: none does
        uint64_t waiting;              // kept requests, or buckets of nodes, that are due
        uint64_t sent;                 // spans, data points; since the collector began
        uint64_t refused;              // of them, since the first --otlp of this database
        uint64_t lost;                 // as waiting: deleted for their age before they were sent
        char why[CHANGE_REASON_BYTES]; // the last thing that went wrong; "" while sending
    } signals[OTLP_SIGNALS];
    uint64_t late; // requests that are in no metric, as they came after theirs was sent
};
// Any thread.
void otlp_get_status(struct otlp *o, struct otlp_status *out);

// "traces", "metrics".
const char *otlp_signal_name(enum otlp_signal signal);
