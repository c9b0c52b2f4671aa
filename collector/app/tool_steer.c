// SPDX-License-Identifier: Apache-2.0
#include "app/tool_state.h"

#include "app/triggers.h"
#include "base/clock.h"
#include "base/limits.h"

enum { SECOND_NS = 1000000000 };

// answer: of the shim; its list of triggers goes on.
static void send_steered(struct tool_link *t, bool ok, struct slice text,
                         const struct control_map *answer) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    bool triggers = answer && triggers_has(*answer);
    struct control_writer w = control_begin(&b, CONTROL_STEERED, triggers ? 3 : 2);
    control_bool(&w, FIELD_OK, ok);
    control_text(&w, FIELD_TEXT, text);
    if (triggers) {
        triggers_put(&w, *answer);
    }
    tool_send(t, &b, &w);
    t->steered = NULL;
}

// A question that changes nothing holds up no order.
static bool is_steered(const struct tool_links *links, const struct roster_node *node, bool lists) {
    for (const struct tool_link *t = links->first; t; t = t->next) {
        if (t->steered == node && t->lists == lists) {
            return true;
        }
    }
    return false;
}

// What the shim is to do, from what the tool says. False when that is nothing it could.
static bool pack_steer(struct control_map message, int64_t id, struct buffer *out) {
    struct slice command = {0};
    int64_t n = 0;
    if (control_get_text(message, FIELD_COMMAND, &command) && triggers_is_command(command)) {
        return triggers_pack_order(message, id, out);
    }
    const char *how = control_get_int(message, FIELD_ONE_IN, &n)       ? FIELD_ONE_IN
                      : control_get_int(message, FIELD_PER_SECOND, &n) ? FIELD_PER_SECOND
                                                                       : NULL;
    bool known = slice_is(command, STEER_PAUSE) || slice_is(command, STEER_RESUME) ||
                 (slice_is(command, STEER_SAMPLE) && how && n > 0);
    struct control_writer w = control_begin(out, CONTROL_STEER, how ? 3 : 2);
    control_int(&w, FIELD_ID, id);
    control_text(&w, FIELD_COMMAND, command);
    if (how) {
        control_int(&w, how, n);
    }
    return control_end(&w) && known;
}

void tool_steer(struct tool_link *t, struct control_map message) {
    struct roster_node *node = tool_named_node(t, message);
    if (!node) {
        return;
    }
    struct shim_link *shim = tool_shim_of(t->links, node);
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct slice command = {0};
    control_get_text(message, FIELD_COMMAND, &command);
    bool lists = slice_is(command, STEER_TRIGGER_LIST);
    if (!shim) {
        tool_refuse(t, "the node is not connected");
    } else if (is_steered(t->links, node, lists)) {
        tool_refuse(t, "the node has not answered an earlier question yet; try again");
    } else if (!pack_steer(message, ++t->links->last_id, &b)) {
        tool_refuse(t, "this collector knows pause, resume, sample with a number from 1 on, and "
                       "orders about triggers");
    } else {
        t->steered = node;
        t->lists = lists;
        t->steer_id = t->links->last_id;
        t->deadline = clock_monotonic() + (int64_t)LIMIT_STEER_SECONDS * SECOND_NS;
        shim_link_send(shim, &b);
    }
    buffer_free(&b);
}

void tool_steered(void *context, const struct shim_link *shim, struct control_map answer) {
    const struct tool_links *links = context;
    int64_t id = 0;
    bool ok = false;
    struct slice text = slice_text("");
    control_get_int(answer, FIELD_ID, &id);
    control_get_bool(answer, FIELD_OK, &ok);
    control_get_text(answer, FIELD_TEXT, &text);
    for (struct tool_link *t = links->first; t; t = t->next) {
        if (t->steered && t->steered->node == shim->node && t->steer_id == id) {
            send_steered(t, ok, text, &answer);
        }
    }
}

void tool_steer_second(struct tool_links *links, int64_t now) {
    for (struct tool_link *t = links->first; t; t = t->next) {
        if (t->steered && (now >= t->deadline || !t->steered->connected)) {
            send_steered(
                t, false,
                slice_text(t->steered->connected
                               ? "the node does not answer; its shim may be of an older release"
                               : "the node is gone"),
                NULL);
        }
    }
}
