// SPDX-License-Identifier: Apache-2.0
#include "export/otlp_attributes.h"

#include <assert.h>

#include "base/names.h"

static Otlp__Value *add(struct attributes *a, const char *key, Otlp__Value__ValueCase kind) {
    assert(a->count < ATTRIBUTES_MOST);
    size_t i = a->count++;
    a->values[i] = (Otlp__Value)OTLP__VALUE__INIT;
    a->values[i].value_case = kind;
    a->all[i] = (Otlp__Attribute)OTLP__ATTRIBUTE__INIT;
    a->all[i].key = (char *)key;
    a->all[i].value = &a->values[i];
    a->list[i] = &a->all[i];
    return &a->values[i];
}

void attribute_text(struct attributes *a, const char *key, struct slice text) {
    Otlp__Value *value = add(a, key, OTLP__VALUE__VALUE_STRING_VALUE);
    value->string_value = a->texts[a->count - 1];
    names_clean(text, value->string_value, ATTRIBUTE_BYTES);
}

void attribute_int(struct attributes *a, const char *key, int64_t value) {
    add(a, key, OTLP__VALUE__VALUE_INT_VALUE)->int_value = value;
}

void attribute_bool(struct attributes *a, const char *key, bool value) {
    add(a, key, OTLP__VALUE__VALUE_BOOL_VALUE)->bool_value = value;
}

void attribute_us(struct attributes *a, const char *key, int64_t ns) {
    add(a, key, OTLP__VALUE__VALUE_DOUBLE_VALUE)->double_value = (double)ns / 1000.0;
}

void attributes_of_node(struct attributes *a, struct slice node) {
    const uint8_t *at = node.len > 0 ? memchr(node.data, '@', node.len) : NULL;
    attribute_text(a, "service.name", at ? slice_of(node.data, (size_t)(at - node.data)) : node);
    attribute_text(a, "service.instance.id", node);
}

void attributes_scope(Otlp__Scope *scope) {
    *scope = (Otlp__Scope)OTLP__SCOPE__INIT;
    scope->name = (char *)"kprof";
    scope->version = (char *)KPROF_VERSION;
}

uint64_t attributes_time(int64_t ns) {
    return ns > 0 ? (uint64_t)ns : 0;
}
