// SPDX-License-Identifier: Apache-2.0
// An external term: the walk, the readers and the text stay inside it. erl_interface prints some;
// it is not instrumented, so the input and all that it allocates end at a page that nobody may
// touch.
#include "codec/term.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

enum { PAGE = 4096, AREA = 1 << 20, BLOCKS = 512 };

void *__real_malloc(size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void __wrap_free(void *p);

static struct {
    uint8_t *pages, *start;
    size_t size; // with the guard page
} blocks[BLOCKS];
static __thread bool guarded;

void *__wrap_malloc(size_t size) {
    for (int i = 0; guarded && i < BLOCKS; i++) {
        if (!blocks[i].pages) {
            size_t room = (size + PAGE - 1) / PAGE * PAGE;
            uint8_t *pages =
                mmap(NULL, room + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            MUST(pages != MAP_FAILED && mprotect(pages + room, PAGE, PROT_NONE) == 0);
            blocks[i].pages = pages;
            blocks[i].start = pages + room - size;
            blocks[i].size = room + PAGE;
            return blocks[i].start;
        }
    }
    return __real_malloc(size);
}

void __wrap_free(void *p) {
    for (int i = 0; guarded && i < BLOCKS; i++) {
        if (blocks[i].pages && blocks[i].start == p) {
            munmap(blocks[i].pages, blocks[i].size);
            blocks[i].pages = NULL;
            return;
        }
    }
    __real_free(p);
}

// The readers, each at every term of the first level.
static void read_all(struct slice term) {
    bool tail;
    struct slice bytes;
    struct cursor c = cursor_of(term.data, term.len);
    for (int reader = 0; reader < 5; reader++) {
        c = cursor_of(term.data, term.len);
        switch (reader) {
        case 0:
            term_tuple(&c);
            break;
        case 1:
            bytes = term_atom(&c).text;
            MUST(c.failed || (bytes.data >= term.data && bytes.data + bytes.len == c.at));
            break;
        case 2:
            term_integer(&c);
            break;
        case 3:
            term_pid(&c);
            break;
        case 4:
            term_list(&c, &tail, &bytes);
            break;
        }
        MUST(c.at >= term.data && c.at <= c.end && c.end == term.data + term.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t *area;
    if (!area) {
        area = mmap(NULL, AREA + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(area != MAP_FAILED && mprotect(area + AREA, PAGE, PROT_NONE) == 0);
    }
    if (size > AREA) {
        return 0;
    }
    uint8_t *copy = area + AREA - size;
    if (size > 0) {
        memcpy(copy, data, size);
    }
    struct cursor c = cursor_of(copy, size);
    struct slice term = term_take(&c);
    MUST(c.failed ? term.len == 0 : term.len > 0 && term.data + term.len == c.at);
    read_all(slice_of(copy, size));
    char out[121];
    for (size_t room = 1; room <= 120; room += 119) {
        out[room] = 'x';
        guarded = true;
        size_t n = term_text(c.failed ? slice_of(copy, size) : term, out, room);
        guarded = false;
        MUST(n <= room && out[room] == 'x');
    }
    for (int i = 0; i < BLOCKS; i++) {
        MUST(!blocks[i].pages); // nothing is lost
    }
    return 0;
}
