// SPDX-License-Identifier: Apache-2.0
// What an engine answers: its exceptions, its version, its lists; and rows, in pieces of any
// length.
#include <string.h>

#include "export/answer.h"
#include "export/row_read.h"
#include "fuzz.h"
#include "model/stats/histogram.h"

static bool is_word(const char *word) {
    size_t len = strlen(word);
    return len > 0 && len < ANSWER_WORD_BYTES && !strpbrk(word, "'\\; \t\n");
}

struct seen {
    uint64_t rows, sum; // of all that came
};

static bool see(void *to, const struct change_cell *cells) {
    struct seen *s = to;
    s->rows++;
    for (int i = 0; i < 4; i++) {
        s->sum = s->sum * 31 + (uint64_t)cells[i].number + cells[i].null;
        for (size_t b = 0; b < cells[i].bytes.len; b++) {
            s->sum = s->sum * 31 + cells[i].bytes.data[b];
        }
    }
    MUST(histogram_valid(cells[3].bytes));
    return s->rows < 1000;
}

// Rows are the same, however they come.
static struct seen read_rows(struct slice body, size_t piece, bool *whole) {
    static const enum change_kind kinds[] = {CHANGE_NAME, CHANGE_OPTIONAL, CHANGE_SMALL,
                                             CHANGE_COUNTS};
    struct row_reader r;
    struct seen seen = {0};
    row_reader_init(&r, kinds, 4, see, &seen);
    for (size_t at = 0; at < body.len; at += piece) {
        size_t n = body.len - at < piece ? body.len - at : piece;
        if (!row_reader_feed(&r, slice_of(body.data + at, n))) {
            break;
        }
    }
    *whole = row_reader_whole(&r);
    row_reader_free(&r);
    return seen;
}

static void check_rows(struct slice body) {
    bool whole, in_pieces;
    struct seen at_once = read_rows(body, body.len + 1, &whole);
    struct seen later = read_rows(body, 7, &in_pieces);
    MUST(whole == in_pieces && at_once.rows == later.rows && at_once.sum == later.sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char reason[CHANGE_REASON_BYTES], first[ANSWER_WORD_BYTES], second[ANSWER_WORD_BYTES];
    uint32_t major = 0, minor = 0;
    uint64_t numbers[2];
    static const long statuses[] = {200, 302, 404, 500};
    struct slice body = slice_of(data, size);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        const struct answer a = {statuses[i], 0, body, false, 0};
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
    check_rows(body);
    return 0;
}
