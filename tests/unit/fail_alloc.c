// SPDX-License-Identifier: Apache-2.0
#include "fail_alloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);

// the compiler knows that calloc reads no variable, and would leave stores to it out
static __thread volatile long fail_at = -1;
static __thread bool only_one;
static __thread long count;

static bool fails(void) {
    long i = count++;
    return fail_at >= 0 && (only_one ? i == fail_at : i >= fail_at);
}

void fail_alloc_at(long n) {
    fail_at = n;
    only_one = false;
    count = 0;
}

void fail_alloc_once(long n) {
    fail_alloc_at(n);
    only_one = true;
}

long fail_alloc_count(void) {
    return count;
}

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size) {
    return fails() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = __wrap_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}
