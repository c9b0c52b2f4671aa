// SPDX-License-Identifier: Apache-2.0
// What an engine answers to an export: its exceptions, its version, its lists.
#include <string.h>

#include "export/answer.h"
#include "fuzz.h"

static bool is_word(const char *word) {
    size_t len = strlen(word);
    return len > 0 && len < ANSWER_WORD_BYTES && !strpbrk(word, "'\\; \t\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char reason[CHANGE_REASON_BYTES], first[ANSWER_WORD_BYTES], second[ANSWER_WORD_BYTES];
    uint32_t major = 0, minor = 0;
    uint64_t numbers[2];
    static const long statuses[] = {200, 302, 404, 500};
    struct slice body = slice_of(data, size);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        const struct answer a = {statuses[i], 0, body, false};
        enum answer_meaning order = answer_to_order(&a, reason);
        MUST((order == ANSWER_DONE) == (reason[0] == 0));
        MUST(order != ANSWER_DONE || (statuses[i] == 200 && size == 0));
        MUST(order != ANSWER_REFUSED || answer_exception(body) > 0);
        MUST(strlen(reason) < sizeof reason && !strpbrk(reason, "\n\r\033"));
        answer_to_question(&a, reason);
        MUST(strlen(reason) < sizeof reason && !strpbrk(reason, "\n\r\033"));
    }
    MUST(!answer_version(body, &major, &minor) || memchr(data, '.', size));
    MUST(!answer_numbers(body, numbers) || data[size - 1] == '\n');
    for (size_t before = size + 1; body.len < before && answer_pair(&body, first, second);) {
        before = body.len + 1;
        MUST(is_word(first) && is_word(second) && body.len < size);
    }
    return 0;
}
