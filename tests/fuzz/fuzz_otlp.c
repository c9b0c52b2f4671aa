// SPDX-License-Identifier: Apache-2.0
// What a receiver answers to --otlp; and headers as somebody has written them into a file.
#include <string.h>

#include "export/otlp_answer.h"
#include "export/otlp_headers.h"
#include "fuzz.h"

static bool is_clean(const char *text, size_t room) {
    return strlen(text) < room && !strpbrk(text, "\n\r\033");
}

static void answers(struct slice body) {
    static const long statuses[] = {200, 204, 302, 400, 413, 404, 503};
    char reason[CHANGE_REASON_BYTES];
    struct otlp_partial partial;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        for (int cut = 0; cut < 2; cut++) {
            const struct answer a = {.status = statuses[i], .body = body, .cut = cut};
            enum answer_meaning meaning = otlp_answer(&a, &partial, reason);
            MUST((meaning == ANSWER_DONE) == (reason[0] == 0));
            MUST(meaning != ANSWER_DONE || (statuses[i] < 300 && !cut));
            MUST((meaning == ANSWER_REFUSED) == (statuses[i] == 400 || statuses[i] == 413));
            MUST(meaning == ANSWER_DONE || (partial.rejected == 0 && !partial.message[0]));
            MUST(is_clean(reason, sizeof reason));
            MUST(is_clean(partial.message, sizeof partial.message));
            MUST(partial.rejected <= INT64_MAX);
        }
    }
}

static void headers(const uint8_t *data, size_t size) {
    struct otlp_headers h;
    char why[HEADERS_WHY_BYTES] = "", *text = malloc(size + 1);
    if (!text) {
        return;
    }
    memcpy(text, data, size);
    text[size] = 0;
    bool ok = otlp_headers_read(text, &h, why);
    MUST(ok == (why[0] == 0));
    for (int i = 0; h.lines[i]; i++) {
        const char *colon = strchr(h.lines[i], ':');
        MUST(i < LIMIT_OTLP_HEADERS && colon && colon > h.lines[i]);
        MUST(!strpbrk(h.lines[i], "\n\r"));
    }
    otlp_headers_free(&h);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    answers(slice_of(data, size));
    headers(data, size);
    return 0;
}
