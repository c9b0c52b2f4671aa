// SPDX-License-Identifier: Apache-2.0
#include "app/otlp_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text_amount.h"
#include "net/secret.h"

enum { TEXT_BYTES = OTLP_TO_BYTES + OTLP_SIGNALS * (CHANGE_REASON_BYTES + 200) };

static bool is_none(const struct collector_options *o) {
    return o->otlp_to && strcmp(o->otlp_to, COLLECTOR_EXPORT_NONE) == 0;
}

static void wanted(const struct collector_options *o, bool signals[OTLP_SIGNALS]) {
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        const char *name = otlp_signal_name((enum otlp_signal)i);
        signals[i] = !o->otlp_only || strcmp(o->otlp_only, name) == 0;
    }
}

int otlp_link_follow(struct store *store, const struct collector_options *o) {
    bool signals[OTLP_SIGNALS];
    wanted(o, signals);
    if (!(is_none(o) ? store_otlp_unfollow(store)
                     : !o->otlp_to || store_otlp_follow(store, signals, (uint32_t)o->bucket_s))) {
        log_error("%s: %s", o->db, store_error(store));
        return EXIT_DATABASE;
    }
    if (!o->otlp_to && store_otlp_followed(store)) {
        log_info("%s: was sent by OTLP before; a later --otlp goes on from there, unless it is "
                 "--otlp " COLLECTOR_EXPORT_NONE,
                 o->db);
    }
    return EXIT_SUCCESS;
}

static bool sends(const struct collector_options *o) {
    return o->otlp_to && !is_none(o);
}

int otlp_link_headers(const struct collector_options *o,
                      char headers[LIMIT_OTLP_HEADERS_BYTES + 1]) {
    char why[SECRET_ERROR_BYTES];
    headers[0] = 0;
    if (!sends(o) || !o->otlp_headers_file) {
        return EXIT_SUCCESS;
    }
    if (!secret_read_headers(o->otlp_headers_file, headers, why)) {
        log_error("--otlp-headers-file %s", why);
        return EXIT_USAGE;
    }
    if (!otlp_headers_check(headers, why)) {
        log_error("--otlp-headers-file %s: %s", o->otlp_headers_file, why);
        return EXIT_USAGE;
    }
    return EXIT_SUCCESS;
}

static int start(const struct collector_options *o, const char *headers, struct writer *writer,
                 struct otlp **out) {
    char why[OTLP_WHY_BYTES];
    if (o->otlp_ca && access(o->otlp_ca, R_OK) != 0) {
        log_error("--otlp-ca %s: %s", o->otlp_ca, strerror(errno));
        return EXIT_USAGE;
    }
    struct otlp_options options = {.url = o->otlp_to,
                                   .headers = headers,
                                   .ca = o->otlp_ca,
                                   .bucket_s = (uint32_t)o->bucket_s,
                                   .database = o->db};
    wanted(o, options.signals);
    *out = otlp_start(&options, writer, why);
    if (!*out) {
        log_error("--otlp: %s", why);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int otlp_link_start(const struct collector_options *o, struct writer *writer, struct otlp **out) {
    char headers[LIMIT_OTLP_HEADERS_BYTES + 1];
    *out = NULL;
    int status = otlp_link_headers(o, headers);
    if (status == EXIT_SUCCESS && sends(o)) {
        status = start(o, headers[0] ? headers : NULL, writer, out);
    }
    explicit_bzero(headers, sizeof headers);
    return status;
}

// -- told to others -------------------------------------------------------------------------------

static int64_t signed_of(uint64_t n) {
    return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

static void put_signal(const struct otlp_signal_status *s, enum otlp_signal signal, char *text) {
    const char *name = otlp_signal_name(signal);
    size_t n = strlen(text);
    n += (size_t)(s->sending ? snprintf(text + n, TEXT_BYTES - n, "; %s go there", name)
                             : snprintf(text + n, TEXT_BYTES - n, "; it takes no %s: %s", name,
                                        s->why[0] ? s->why : "it was not asked yet"));
    if (s->refused > 0) {
        n += (size_t)snprintf(
            text + n, TEXT_BYTES - n, "; refused: %llu %s%s", (unsigned long long)s->refused,
            signal == OTLP_TRACES ? "span" : "data point", text_plural(s->refused));
    }
    if (s->lost > 0) {
        snprintf(text + n, TEXT_BYTES - n, "; deleted unsent, for their age: %llu %s%s",
                 (unsigned long long)s->lost, signal == OTLP_TRACES ? "request" : "bucket",
                 text_plural(s->lost));
    }
}

void otlp_link_pack(struct control_writer *w, struct otlp *otlp) {
    static const char *const behind[] = {FIELD_OTLP_TRACES_BEHIND_S, FIELD_OTLP_METRICS_BEHIND_S};
    static const char *const waiting[] = {FIELD_OTLP_TRACES_WAITING, FIELD_OTLP_METRICS_WAITING};
    struct otlp_status s;
    char text[TEXT_BYTES];
    otlp_get_status(otlp, &s);
    snprintf(text, sizeof text, "to %s", s.to);
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        if (s.signals[i].wanted) {
            put_signal(&s.signals[i], (enum otlp_signal)i, text);
        }
    }
    size_t n = strlen(text);
    if (s.late > 0) {
        snprintf(text + n, sizeof text - n, "; too late for their metrics: %llu request%s",
                 (unsigned long long)s.late, text_plural(s.late));
    }
    control_text(w, FIELD_OTLP, slice_text(text));
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        control_int(w, behind[i], s.signals[i].behind_s);
        control_int(w, waiting[i], signed_of(s.signals[i].waiting));
    }
}

struct meter_otlp otlp_link_meters(struct otlp *otlp) {
    struct meter_otlp out = {.wanted = otlp};
    struct otlp_status s;
    if (!otlp) {
        return out;
    }
    otlp_get_status(otlp, &s);
    out.late = s.late;
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        const struct otlp_signal_status *of = &s.signals[i];
        out.signals[i] = (struct meter_otlp_signal){
            of->wanted, of->sending, of->behind_s, of->waiting, of->sent, of->refused, of->lost};
    }
    return out;
}
