// SPDX-License-Identifier: Apache-2.0
#include "app/flame_missed.h"

#include "codec/protocol.h"

#include <stdio.h>
#include <string.h>

void missed_ask(struct flame_missed *m, const struct full_trace *trace,
                const struct flame_shim *shim, int64_t id) {
    uint32_t count;
    const struct full_suspect *suspects = full_trace_suspects(trace, &count);
    if (count == m->asked) {
        return;
    }
    uint64_t pids[LIMIT_FULL_SUSPECTS];
    uint32_t asked = 0;
    for (; m->asked < count; m->asked++) {
        pids[asked++] = suspects[m->asked].pid;
    }
    flame_shim_ask(shim, CONTROL_FULL_MORE, id, pids, asked);
}

void missed_take(struct flame_missed *m, const struct full_trace *trace,
                 struct control_map message) {
    uint32_t count;
    const struct full_suspect *suspects = full_trace_suspects(trace, &count);
    struct control_list list = {0};
    control_get_list(message, FIELD_PROCESSES, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        struct control_map one = control_list_at(list, i);
        struct slice text = slice_text(""), name = slice_text("");
        char pid[MESSAGE_PID_BYTES];
        control_get_text(one, FIELD_PID, &text);
        control_get_text(one, FIELD_NAME, &name);
        for (uint32_t at = 0; at < count; at++) {
            message_pid_text(suspects[at].pid, pid);
            if (slice_is(text, pid)) {
                m->of[at].missed = true;
                names_clean(name, m->of[at].name, sizeof m->of[at].name);
            }
        }
    }
}

uint32_t missed_pids(const struct flame_missed *m, const struct full_trace *trace, uint64_t *pids,
                     uint32_t room) {
    uint32_t count, found = 0;
    const struct full_suspect *suspects = full_trace_suspects(trace, &count);
    for (uint32_t i = 0; i < count && found < room; i++) {
        if (m->of[i].missed) {
            pids[found++] = suspects[i].pid;
        }
    }
    return found;
}

void missed_keep(const struct flame_missed *m, struct full_trace *trace) {
    uint32_t count;
    const struct full_suspect *suspects = full_trace_suspects(trace, &count);
    struct profile *p = full_trace_profile(trace);
    p->missed_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (m->of[i].missed && suspects[i].requests > 0) {
            struct profile_missed *to = &p->missed[p->missed_count++];
            message_pid_text(suspects[i].pid, to->pid);
            snprintf(to->name, sizeof to->name, "%s", m->of[i].name);
            to->requests = suspects[i].requests;
        }
    }
}

void missed_put(const struct flame_missed *m, const struct full_trace *trace,
                struct control_writer *w) {
    uint32_t count = 0, told = 0;
    const struct full_suspect *suspects = trace ? full_trace_suspects(trace, &count) : NULL;
    for (uint32_t i = 0; i < count; i++) {
        told += m->of[i].missed && suspects[i].requests > 0;
    }
    control_list(w, FIELD_MISSED, told);
    for (uint32_t i = 0; i < count; i++) {
        if (m->of[i].missed && suspects[i].requests > 0) {
            char pid[MESSAGE_PID_BYTES];
            message_pid_text(suspects[i].pid, pid);
            control_map(w, 3);
            control_text(w, FIELD_PID, slice_text(pid));
            control_text(w, FIELD_NAME, slice_text(m->of[i].name));
            control_int(w, FIELD_REQUESTS, (int64_t)suspects[i].requests);
        }
    }
}
