// SPDX-License-Identifier: Apache-2.0
// What is ordered over HTTP: an address, a line's end, and the body behind it.
#include <string.h>

#include "codec/json_object.h"
#include "fuzz.h"
#include "web/orders.h"

static bool ends(const char *text, size_t room) {
    return memchr(text, 0, room) != NULL;
}

// Each pair is within its bounds, and nothing comes behind the end or what is bad.
static void read_object(struct slice body) {
    struct json_object o = json_object_of(body);
    enum json_kind kind;
    size_t pairs = 0;
    while ((kind = json_object_next(&o)) > JSON_BAD) {
        MUST(ends(o.key, sizeof o.key) && ++pairs <= body.len);
        MUST(kind != JSON_TEXT || ends(o.text, sizeof o.text));
        MUST(kind != JSON_BOOL || o.number == 0 || o.number == 1);
    }
    MUST(kind == JSON_END || (o.why && json_object_next(&o) == JSON_BAD));
}

static void check(const struct order *o) {
    MUST(ends(o->node, sizeof o->node) && ends(o->text, sizeof o->text) &&
         ends(o->identity, sizeof o->identity));
    switch (o->kind) {
    case ORDER_PAUSE:
    case ORDER_RESUME:
        MUST(o->node[0] && !o->text[0] && o->requests == 0);
        break;
    case ORDER_SAMPLE:
        MUST(o->node[0] && o->one_in >= 0 && o->per_second >= 0);
        MUST((o->one_in > 0) != (o->per_second > 0));
        break;
    case ORDER_NOTE:
        MUST(o->text[0] && o->at_s >= 0);
        break;
    case ORDER_FLAME:
        MUST(o->node[0] && o->requests > 0 && o->seconds > 0);
        break;
    case ORDER_FLAME_STOP:
    case ORDER_STACKS_STOP:
        MUST(o->id > 0);
        break;
    case ORDER_STACKS:
        MUST(o->node[0] && o->seconds > 0 && o->hz >= 0 && o->top >= 0 && o->every_ms >= 0);
        MUST(ends(o->application, sizeof o->application) && ends(o->pid, sizeof o->pid) &&
             ends(o->registered, sizeof o->registered));
        break;
    case ORDER_TOP:
        MUST(o->node[0] && ends(o->by, sizeof o->by));
        break;
    case ORDER_TRIGGERS:
        MUST(o->node[0]);
        break;
    case ORDER_TRIGGER_ADD:
        MUST(o->node[0] && o->trigger[0] && ends(o->trigger, sizeof o->trigger));
        MUST((o->above >= 0) != (o->above_us >= 0) && (o->above_us >= 0) == (o->tier[0] != 0));
        MUST(ends(o->tier, sizeof o->tier) && ends(o->label, sizeof o->label));
        MUST(!(o->high_water && o->for_ms >= 0));
        break;
    case ORDER_TRIGGER_REMOVE:
        MUST(o->node[0] && o->name[0] && ends(o->name, sizeof o->name));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char why[ORDER_WHY_BYTES] = "";
    struct order order;
    const uint8_t *line = memchr(data, '\n', size);
    size_t len = line ? (size_t)(line - data) : size;
    char *path = malloc(len + 1);
    MUST(path);
    memcpy(path, data, len);
    path[len] = 0;
    struct slice body = line ? slice_of(line + 1, size - len - 1) : slice_of(data, 0);
    read_object(body);
    if (order_find(path, &order)) {
        MUST(path[0] == '/');
        if (order_parse(&order, body, why)) {
            check(&order);
        } else {
            MUST(why[0] && strlen(why) < sizeof why);
        }
    }
    free(path);
    return 0;
}
