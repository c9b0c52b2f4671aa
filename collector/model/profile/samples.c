// SPDX-License-Identifier: Apache-2.0
#include "model/profile/samples.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/limits.h"

enum { SECOND_US = 1000000 };
// Bytes of the longest record of what is told all the time, with its time.
enum { LONGEST = 160 + LIMIT_NAME_BYTES };

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
        free(s->values);
        free(s);
    }
}

size_t samples_bytes(const struct samples *s) {
    // what is behind the records has not been touched
    return sizeof *s + s->records.len + s->second_room * sizeof *s->seconds +
           s->process_room * sizeof *s->processes;
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

static void count(struct sample_counts *c, const struct sample_record *r) {
    uint64_t us = r->number < SECOND_US * (uint64_t)LIMIT_SAMPLE_SECONDS ? r->number : 0;
    c->looks += r->kind == SAMPLE_LOOK;
    c->unchanged += r->kind == SAMPLE_UNCHANGED;
    c->unanswered += r->kind == SAMPLE_UNANSWERED;
    c->held_us += r->kind == SAMPLE_HELD ? us : 0;
    c->late_us += r->kind == SAMPLE_LATE ? us : 0;
}

// The records tell this time, and another second where it is one. False without room.
static bool tell_time(struct samples *s, uint64_t us, uint64_t *told_us) {
    uint64_t second = us / SECOND_US;
    if (s->second_count == 0 || s->seconds[s->second_count - 1].second != second) {
        if (second >= LIMIT_SAMPLE_SECONDS ||
            !samples_second(s, (uint32_t)second, slice_of(NULL, 0))) {
            return false;
        }
        *told_us = second * SECOND_US;
    }
    if (us != *told_us) {
        struct sample_record time = {.kind = SAMPLE_TIME, .number = us - *told_us};
        sample_record_write(&s->records, &time);
        *told_us = us;
    }
    return true;
}

void samples_keep(struct samples *s, const struct sample_record *r, uint64_t us, uint64_t *told_us,
                  size_t besides) {
    if (s->records.len + besides + LONGEST > s->records.cap || !tell_time(s, us, told_us)) {
        s->full = true;
        return;
    }
    count(&s->counts, r);
    sample_record_write(&s->records, r);
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
    struct cursor c = cursor_of(records.data, records.len);
    struct sample_record r;
    while (sample_record_read(&c, &r)) {
        if (r.stack > count) {
            return false;
        }
        r.stack = r.stack > 0 ? stacks[r.stack - 1] + 1 : 0;
        sample_record_write(out, &r);
    }
    return !c.failed && !out->failed;
}

static void atom_of(struct slice text, char out[MFA_ATOM_BYTES]) {
    size_t len = text.len < MFA_ATOM_BYTES - 1 ? text.len : MFA_ATOM_BYTES - 1;
    memcpy(out, text.data, len);
    out[len] = 0;
}

bool samples_frame(const struct sample_record *r, struct mfa *mfa) {
    if (r->texts[0].len == 0 || r->texts[1].len == 0 || r->number > 255) {
        return false;
    }
    atom_of(r->texts[0], mfa->module);
    atom_of(r->texts[1], mfa->function);
    mfa->arity = (uint32_t)r->number;
    return true;
}

const char *samples_status(uint8_t status) {
    static const char *const texts[SAMPLE_STATUSES] = {
        [STATUS_RUNNING] = "running",     [STATUS_RUNNABLE] = "runnable",
        [STATUS_WAITING] = "waiting",     [STATUS_COLLECTING] = "garbage collecting",
        [STATUS_EXITING] = "exiting",     [STATUS_SUSPENDED] = "suspended",
        [STATUS_OTHER] = "another status"};
    return texts[status < SAMPLE_STATUSES ? status : STATUS_OTHER];
}
