// SPDX-License-Identifier: Apache-2.0
#include "export/otlp_answer.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "otlp.pb-c.h"

enum { SUCCESS = 200, REDIRECT = 300, BAD = 400, TOO_LARGE = 413, NOT_UNDERSTOOD = 422 };

static struct slice without_end(struct slice text) {
    while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r' ||
                            text.data[text.len - 1] == ' ')) {
        text.len--;
    }
    return text;
}

// Some receivers answer with the same in JSON, whatever they were asked in: that all is well can be
// known from that.
static bool is_json_success(struct slice body) {
    struct slice text = without_end(body);
    return slice_is(text, "{}") || slice_is(text, "{\"partialSuccess\":{}}");
}

static bool take_success(struct slice body, struct otlp_partial *partial) {
    if (is_json_success(body)) {
        return true;
    }
    Otlp__Response *r = otlp__response__unpack(NULL, body.len, body.data);
    if (!r) {
        return false;
    }
    const Otlp__Partial *p = r->partial_success;
    if (p) {
        partial->rejected = p->rejected > 0 ? (uint64_t)p->rejected : 0;
        names_clean(slice_text(p->error_message), partial->message, sizeof partial->message);
    }
    otlp__response__free_unpacked(r, NULL);
    return true;
}

// Its words: of a message, where it is one and has some, else of the text.
static void tell(const struct answer *a, char *reason) {
    char text[CHANGE_REASON_BYTES] = "";
    Otlp__Refusal *r = a->cut ? NULL : otlp__refusal__unpack(NULL, a->body.len, a->body.data);
    if (r && r->message[0] && r->base.n_unknown_fields == 0) {
        names_clean(slice_text(r->message), text, sizeof text);
    } else {
        names_clean(without_end(a->body), text, sizeof text);
    }
    if (r) {
        otlp__refusal__free_unpacked(r, NULL);
    }
    snprintf(reason, CHANGE_REASON_BYTES, "it answers with HTTP status %ld%s%.200s", a->status,
             text[0] ? ": " : "", text);
}

enum answer_meaning otlp_answer(const struct answer *a, struct otlp_partial *partial,
                                char *reason) {
    *partial = (struct otlp_partial){0};
    reason[0] = 0;
    bool success = a->status >= SUCCESS && a->status < REDIRECT;
    if (success && !a->cut && take_success(a->body, partial)) {
        return ANSWER_DONE;
    }
    if (success) {
        char text[CHANGE_REASON_BYTES];
        names_clean(a->body, text, sizeof text);
        snprintf(reason, CHANGE_REASON_BYTES, "it answers what OTLP does not: %.200s", text);
        return ANSWER_LATER;
    }
    tell(a, reason);
    // what is said of all requests, as that who asks may not, is not about this one
    return a->status == BAD || a->status == TOO_LARGE || a->status == NOT_UNDERSTOOD
               ? ANSWER_REFUSED
               : ANSWER_LATER;
}
