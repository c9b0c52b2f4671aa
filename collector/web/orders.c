// SPDX-License-Identifier: Apache-2.0
#include "web/orders.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "codec/json_object.h"

// the year 9999, so that sums of times stay times
static const int64_t LAST_S = 253402300799;
enum { MOST_ONE_IN = 1073741824, MOST_PER_SECOND = 1000000 };

// -- addresses ------------------------------------------------------------------------------------

static const struct {
    const char *path;
    enum order_kind kind;
} addresses[] = {{"/api/v1/nodes/{node}/pause", ORDER_PAUSE},
                 {"/api/v1/nodes/{node}/resume", ORDER_RESUME},
                 {"/api/v1/nodes/{node}/sample", ORDER_SAMPLE},
                 {"/api/v1/nodes/{node}/triggers", ORDER_TRIGGERS},
                 {"/api/v1/nodes/{node}/triggers/add", ORDER_TRIGGER_ADD},
                 {"/api/v1/nodes/{node}/triggers/remove", ORDER_TRIGGER_REMOVE},
                 {"/api/v1/notes", ORDER_NOTE},
                 {"/api/v1/flame", ORDER_FLAME},
                 {"/api/v1/flame/stop", ORDER_FLAME_STOP},
                 {"/api/v1/sample", ORDER_STACKS},
                 {"/api/v1/sample/stop", ORDER_STACKS_STOP},
                 {"/api/v1/top", ORDER_TOP}};

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// A part of a path without its "%..". False where it is empty, too long, or none.
static bool decode(struct slice part, char out[ORDER_NAME_BYTES]) {
    size_t len = 0;
    for (size_t i = 0; i < part.len && len + 1 < ORDER_NAME_BYTES; i++) {
        int c = part.data[i];
        if (c == '%') {
            int high = i + 2 < part.len ? hex((char)part.data[i + 1]) : -1;
            int low = high >= 0 ? hex((char)part.data[i + 2]) : -1;
            c = low >= 0 ? 16 * high + low : 0;
            i += 2;
        }
        if (c == 0) {
            return false;
        }
        out[len++] = (char)c;
    }
    out[len] = 0;
    return len > 0 && len + 1 < ORDER_NAME_BYTES;
}

// Whether a path is that of a pattern; its {node} goes to out.
static bool fits(const char *pattern, const char *path, char out[ORDER_NAME_BYTES]) {
    static const char place[] = "{node}";
    const char *at = strstr(pattern, place);
    if (!at) {
        return strcmp(pattern, path) == 0;
    }
    size_t before = (size_t)(at - pattern), len = strlen(path);
    const char *behind = at + sizeof place - 1;
    size_t after = strlen(behind);
    if (len <= before + after || memcmp(path, pattern, before) != 0 ||
        strcmp(path + len - after, behind) != 0) {
        return false;
    }
    struct slice name = slice_of(path + before, len - before - after);
    return !memchr(name.data, '/', name.len) && decode(name, out);
}

bool order_find(const char *path, struct order *out) {
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        *out = (struct order){.kind = addresses[i].kind, .above = -1, .above_us = -1, .for_ms = -1};
        if (fits(addresses[i].path, path, out->node)) {
            return true;
        }
    }
    return false;
}

// -- bodies ---------------------------------------------------------------------------------------

#define OF(kind) (1u << (kind))

// By what the busiest processes are chosen.
static const char *const by_words[] = {"reductions", "memory", "message_queue_len", "binary", NULL};

// What triggers are about.
static const char tier_p99[] = "tier_p99";
static const char *const trigger_words[] = {
    "run_queue", "message_queue_len", "memory", "reductions", tier_p99, NULL};
// As the shim has it: no more than a double holds exactly, seven days.
static const int64_t MOST_ABOVE = 1LL << 53, MOST_EVERY_MS = 604800000;

// The fields that orders have.
static const struct field {
    const char *key;
    unsigned kinds; // of orders that take it: bits; those that cannot be without it
    unsigned needed;
    size_t place, room; // room 0: a whole number, or a flag
    int64_t least, most;
    const char *const *words; // it is one of these; NULL: any text
    bool flag;
} fields[] = {
#define NUMBER(name, kinds, needed, least, most)                                                   \
    { #name, kinds, needed, offsetof(struct order, name), 0, least, most, NULL, false }
#define FLAG(name, kinds)                                                                          \
    { #name, kinds, 0, offsetof(struct order, name), 0, 0, 0, NULL, true }
#define ONE_OF(name, kinds, needed, words)                                                         \
    {                                                                                              \
#name, kinds, needed, offsetof(struct order, name), sizeof((struct order *)0)->name, 0, 0, \
            words, false                                                                           \
    }
#define WORDS(name, kinds, needed) ONE_OF(name, kinds, needed, NULL)
    NUMBER(one_in, OF(ORDER_SAMPLE), 0, 1, MOST_ONE_IN),
    NUMBER(per_second, OF(ORDER_SAMPLE), 0, 1, MOST_PER_SECOND),
    WORDS(text, OF(ORDER_NOTE), OF(ORDER_NOTE)),
    NUMBER(at_s, OF(ORDER_NOTE), 0, 1, LAST_S),
    WORDS(node, OF(ORDER_NOTE) | OF(ORDER_FLAME) | OF(ORDER_STACKS) | OF(ORDER_TOP),
          OF(ORDER_FLAME) | OF(ORDER_STACKS) | OF(ORDER_TOP)),
    NUMBER(requests, OF(ORDER_FLAME), OF(ORDER_FLAME), 1, LIMIT_FULL_ASKED),
    NUMBER(seconds, OF(ORDER_FLAME), OF(ORDER_FLAME), 1, LIMIT_FULL_SECONDS),
    WORDS(identity, OF(ORDER_FLAME), 0),
    NUMBER(id, OF(ORDER_FLAME_STOP) | OF(ORDER_STACKS_STOP),
           OF(ORDER_FLAME_STOP) | OF(ORDER_STACKS_STOP), 1, INT64_MAX),
    NUMBER(seconds, OF(ORDER_STACKS), OF(ORDER_STACKS), 1, LIMIT_SAMPLE_SECONDS),
    NUMBER(hz, OF(ORDER_STACKS), 0, 1, 1000),
    NUMBER(top, OF(ORDER_STACKS), 0, 1, 1000),
    NUMBER(every_ms, OF(ORDER_STACKS), 0, 100, 3600000),
    NUMBER(budget_ppm, OF(ORDER_STACKS), 0, 1000, 500000),
    ONE_OF(by, OF(ORDER_STACKS) | OF(ORDER_TOP), 0, by_words),
    WORDS(application, OF(ORDER_STACKS), 0),
    WORDS(registered, OF(ORDER_STACKS), 0),
    WORDS(pid, OF(ORDER_STACKS), 0),
    ONE_OF(trigger, OF(ORDER_TRIGGER_ADD), OF(ORDER_TRIGGER_ADD), trigger_words),
    WORDS(tier, OF(ORDER_TRIGGER_ADD), 0),
    NUMBER(above, OF(ORDER_TRIGGER_ADD), 0, 0, MOST_ABOVE),
    NUMBER(above_us, OF(ORDER_TRIGGER_ADD), 0, 0, MOST_ABOVE),
    NUMBER(for_ms, OF(ORDER_TRIGGER_ADD), 0, 0, 3600000),
    FLAG(high_water, OF(ORDER_TRIGGER_ADD)),
    NUMBER(every_ms, OF(ORDER_TRIGGER_ADD), 0, 10000, MOST_EVERY_MS),
    NUMBER(seconds, OF(ORDER_TRIGGER_ADD), 0, 1, 3600),
    NUMBER(hz, OF(ORDER_TRIGGER_ADD), 0, 1, 1000),
    WORDS(label, OF(ORDER_TRIGGER_ADD), 0),
    WORDS(name, OF(ORDER_TRIGGER_ADD) | OF(ORDER_TRIGGER_REMOVE), OF(ORDER_TRIGGER_REMOVE)),
#undef WORDS
#undef ONE_OF
#undef FLAG
#undef NUMBER
};
enum { FIELDS = sizeof fields / sizeof *fields };
_Static_assert(FIELDS <= 32, "each has a bit of those that were seen");

static const struct field *field_of(enum order_kind kind, const char *key) {
    for (size_t i = 0; i < FIELDS; i++) {
        if (fields[i].kinds & OF(kind) && strcmp(fields[i].key, key) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

__attribute__((format(printf, 2, 3))) static bool refuse(char why[ORDER_WHY_BYTES],
                                                         const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, ORDER_WHY_BYTES, format, args);
    va_end(args);
    return false;
}

static bool is_among(const char *const *words, const char *text) {
    for (; words && *words; words++) {
        if (strcmp(*words, text) == 0) {
            return true;
        }
    }
    return !words;
}

// "a, b and c"
static void join(const char *const *words, char out[ORDER_WHY_BYTES]) {
    size_t len = 0;
    out[0] = 0;
    for (; *words && len < ORDER_WHY_BYTES; words++) {
        const char *between = len == 0 ? "" : words[1] ? ", " : " and ";
        len += (size_t)snprintf(out + len, ORDER_WHY_BYTES - len, "%s%s", between, *words);
    }
}

static bool take(struct order *order, const struct field *f, const struct json_object *pair,
                 enum json_kind kind, char why[ORDER_WHY_BYTES]) {
    char *to = (char *)order + f->place;
    if (f->room > 0) {
        size_t len = strlen(pair->text);
        if (kind != JSON_TEXT || len == 0 || len >= f->room) {
            return refuse(why, "%s: want a text of 1 to %zu bytes", f->key, f->room - 1);
        }
        if (!is_among(f->words, pair->text)) {
            char words[ORDER_WHY_BYTES];
            join(f->words, words);
            return refuse(why, "%s: want one of %s", f->key, words);
        }
        memcpy(to, pair->text, len + 1);
        return true;
    }
    if (f->flag) {
        *(bool *)to = pair->number != 0;
        return kind == JSON_BOOL || refuse(why, "%s: want true or false", f->key);
    }
    if (kind != JSON_WHOLE || pair->number < f->least || pair->number > f->most) {
        return refuse(why, "%s: want a whole number from %lld to %lld", f->key, (long long)f->least,
                      (long long)f->most);
    }
    *(int64_t *)to = pair->number;
    return true;
}

static bool whole_trigger(const struct order *order, char why[ORDER_WHY_BYTES]) {
    bool tier = strcmp(order->trigger, tier_p99) == 0;
    const char *limit = tier ? "above_us" : "above";
    if ((tier ? order->above_us : order->above) < 0) {
        return refuse(why, "%s is missing", limit);
    }
    if (tier != (order->tier[0] != 0) || (order->above >= 0 && order->above_us >= 0)) {
        return refuse(why, tier ? "want tier and above_us, and no above"
                                : "tier and above_us are of tier_p99 alone");
    }
    if (order->high_water && order->for_ms >= 0) {
        return refuse(why, "either for_ms or high_water");
    }
    return true;
}

static bool whole(const struct order *order, unsigned seen, char why[ORDER_WHY_BYTES]) {
    for (size_t i = 0; i < FIELDS; i++) {
        if (fields[i].needed & OF(order->kind) && !(seen & 1u << i)) {
            return refuse(why, "%s is missing", fields[i].key);
        }
    }
    if (order->kind == ORDER_SAMPLE && !order->one_in == !order->per_second) {
        return refuse(why, "want one_in or per_second, one of the two");
    }
    if (order->kind == ORDER_TRIGGER_ADD) {
        return whole_trigger(order, why);
    }
    return true;
}

bool order_parse(struct order *order, struct slice body, char why[ORDER_WHY_BYTES]) {
    struct json_object o = json_object_of(body);
    unsigned seen = 0;
    enum json_kind kind;
    if (body.len == 0) {
        return whole(order, seen, why);
    }
    while ((kind = json_object_next(&o)) > JSON_BAD) {
        const struct field *f = field_of(order->kind, o.key);
        if (!f) {
            return refuse(why, "%s: nothing of that name can be told here", o.key);
        }
        if (seen & 1u << (f - fields)) {
            return refuse(why, "%s stands twice", o.key);
        }
        seen |= 1u << (f - fields);
        if (!take(order, f, &o, kind, why)) {
            return false;
        }
    }
    return kind == JSON_END ? whole(order, seen, why) : refuse(why, "the body: %s", o.why);
}
