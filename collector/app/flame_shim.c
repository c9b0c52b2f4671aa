// SPDX-License-Identifier: Apache-2.0
#include "app/flame_shim.h"

#include "base/limits.h"
#include "codec/protocol.h"

void flame_shim_put_pids(struct control_writer *w, const uint64_t *pids, uint32_t count) {
    control_list(w, FIELD_PROCESSES, count);
    for (uint32_t i = 0; i < count; i++) {
        char pid[MESSAGE_PID_BYTES];
        message_pid_text(pids[i], pid);
        control_map(w, 1);
        control_text(w, FIELD_PID, slice_text(pid));
    }
}

void flame_shim_ask(const struct flame_shim *shim, const char *type, int64_t id,
                    const uint64_t *pids, uint32_t count) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, type, 2);
    control_int(&w, FIELD_ID, id);
    flame_shim_put_pids(&w, pids, count);
    if (control_end(&w)) {
        shim->send(shim->link, &b);
    }
    buffer_free(&b);
}
