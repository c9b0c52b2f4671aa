// SPDX-License-Identifier: Apache-2.0
// Attributes of OTLP, as many as a span of ours has; and what all that is sent has in common.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "otlp.pb-c.h"

enum { ATTRIBUTES_MOST = 12, ATTRIBUTE_BYTES = 300 };

// Texts are copied, cleaned. All zero: none. It must not move while its list is used.
struct attributes {
    Otlp__Attribute all[ATTRIBUTES_MOST];
    Otlp__Value values[ATTRIBUTES_MOST];
    char texts[ATTRIBUTES_MOST][ATTRIBUTE_BYTES];
    Otlp__Attribute *list[ATTRIBUTES_MOST];
    size_t count;
};

// Keys live as long as it.
void attribute_text(struct attributes *a, const char *key, struct slice text);
void attribute_int(struct attributes *a, const char *key, int64_t value);
void attribute_bool(struct attributes *a, const char *key, bool value);
void attribute_us(struct attributes *a, const char *key, int64_t ns); // in µs

// The node: its name before the @ is the service, the whole one the instance.
void attributes_of_node(struct attributes *a, struct slice node);
// kprof, with its version.
void attributes_scope(Otlp__Scope *scope);
// Nanoseconds since 1970, never below that.
uint64_t attributes_time(int64_t ns);
