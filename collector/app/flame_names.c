// SPDX-License-Identifier: Apache-2.0
#include "app/flame_names.h"

#include "codec/protocol.h"

#include <stdio.h>

enum { NAMES_AT_ONCE = 100 };

void names_ask(struct full_trace *trace, const struct flame_shim *shim, int64_t id) {
    uint64_t pids[NAMES_AT_ONCE];
    uint32_t count = full_trace_unnamed(trace, pids, NAMES_AT_ONCE);
    if (count > 0) {
        flame_shim_ask(shim, CONTROL_FULL_NAMES, id, pids, count);
    }
}

void names_take(struct full_trace *trace, struct control_map message) {
    struct control_list list = {0};
    control_get_list(message, FIELD_PROCESSES, &list);
    for (uint32_t i = 0; i < list.count && i < NAMES_AT_ONCE; i++) {
        struct control_map one = control_list_at(list, i);
        struct slice text = slice_text(""), name = slice_text("");
        char pid[MESSAGE_PID_BYTES];
        uint64_t number;
        control_get_text(one, FIELD_PID, &text);
        control_get_text(one, FIELD_NAME, &name);
        snprintf(pid, sizeof pid, "%.*s", (int)(text.len < sizeof pid ? text.len : 0),
                 (const char *)text.data);
        if (message_pid_parse(pid, &number)) {
            full_trace_named(trace, number, name);
        }
    }
}
