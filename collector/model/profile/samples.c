// SPDX-License-Identifier: Apache-2.0
#include "model/profile/samples.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/limits.h"

struct samples *samples_new(void) {
    struct samples *s = calloc(1, sizeof *s);
    if (s) {
        s->records = buffer_make(LIMIT_SAMPLE_BYTES);
    }
    return s;
}

void samples_free(struct samples *s) {
    if (s) {
        buffer_free(&s->records);
        free(s->seconds);
        free(s->processes);
        free(s);
    }
}

uint32_t samples_process(struct samples *s, const struct sampled_process *process) {
    if (s->process_count == LIMIT_SAMPLE_PROCESSES ||
        !array_grow((void **)&s->processes, &s->process_room, s->process_count,
                    sizeof *s->processes)) {
        s->full = true;
        return UINT32_MAX;
    }
    s->processes[s->process_count] = *process;
    return s->process_count++;
}

bool samples_second(struct samples *s, uint32_t second, struct slice records) {
    bool later = s->second_count == 0 || second > s->seconds[s->second_count - 1].second;
    if (!later || second >= LIMIT_SAMPLE_SECONDS ||
        !array_grow((void **)&s->seconds, &s->second_room, s->second_count, sizeof *s->seconds)) {
        return false;
    }
    s->seconds[s->second_count++] = (struct sample_second){second, (uint32_t)s->records.len};
    return records.len == 0 || buffer_append(&s->records, records.data, records.len);
}

bool samples_renumber(struct slice records, const uint32_t *stacks, uint32_t count,
                      struct buffer *out) {
    struct cursor c = {0};
    struct sample_record r;
    if (records.len > 0) {
        c = cursor_of(records.data, records.len);
    }
    while (sample_record_read(&c, &r)) {
        if (r.stack > count) {
            return false;
        }
        r.stack = r.stack > 0 ? stacks[r.stack - 1] + 1 : 0;
        sample_record_write(out, &r);
    }
    return !c.failed && !out->failed;
}
