// SPDX-License-Identifier: Apache-2.0
// The text of perf script: FlameScope (app/perf/regexp.py, and that of its fork with metrics) and
// stackcollapse-perf.pl take a head of command, process, processor, time, metrics, period and
// event; frames from the innermost out, each with an address and a file; an empty line. They cut
// names at
// "+" and "(", and split them at "->".
#include "report/perf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/flame/forms.h"

static void put_name(struct buffer *out, const char *name) {
    flame_put_clean(out, name, "+()>\n", '.');
}

// -- looks ----------------------------------------------------------------------------------------

// What was seen of a process, as the VM calls it: its value and how much that has changed since the
// look before. Of what only adds up the value is what was added.
static void put_metrics(const struct sample_walk *w, struct buffer *out) {
    static const char *const names[SAMPLE_VALUES] = {[VALUE_REDUCTIONS] = "reductions",
                                                     [VALUE_QUEUE] = "message_queue_len",
                                                     [VALUE_HEAP] = "heap_size",
                                                     [VALUE_STACK] = "stack_size",
                                                     [VALUE_MEMORY] = "memory",
                                                     [VALUE_MINORS] = "minor_gcs",
                                                     [VALUE_OLD_HEAP] = "old_heap_size",
                                                     [VALUE_BINARY] = "bin_vheap_size",
                                                     [VALUE_OLD_BINARY] = "bin_old_vheap_size"};
    const struct sample_state *state = &w->states[w->record.process];
    bool any = false;
    for (int i = 0; i < SAMPLE_VALUES; i++) {
        bool adds = i == VALUE_REDUCTIONS || i == VALUE_MINORS;
        if (state->known & 1U << i) {
            buffer_printf(out, " metric_erlang_%s: %" PRId64 ", %" PRId64, names[i],
                          adds ? w->changes[i] : state->values[i], w->changes[i]);
            any = true;
        }
    }
    buffer_text(out, any ? " :" : "");
}

static void put_frames(const struct sample_walk *w, struct buffer *out) {
    const struct stacks *s = &w->profile->stacks;
    uint32_t at =
        w->record.kind == SAMPLE_UNANSWERED ? STACK_ROOT : w->states[w->record.process].stack;
    if (at == STACK_ROOT) {
        buffer_printf(out, "\tffffffff %s (kprof)\n",
                      w->record.kind == SAMPLE_UNANSWERED ? "did not answer" : "no stack");
    }
    for (; at != STACK_ROOT; at = s->all[at].parent) {
        const struct stack_frame *f = stacks_frame_of(s, at);
        const char *module = f->module == NAME_NONE ? "kprof" : names_text(&s->names, f->module);
        buffer_text(out, "\tffffffff ");
        put_name(out, names_text(&s->names, f->name));
        buffer_text(out, " (");
        flame_put_clean(out, module, "+()> \n", '.');
        // Elixir's files have other names than their modules
        bool erlang = f->module != NAME_NONE && strncmp(module, "Elixir.", 7) != 0;
        buffer_text(out, erlang ? ".erl)\n" : ")\n");
    }
}

// What a process did, as the VM calls it. A command has no spaces and no digits.
static const char *command_of(const struct sample_record *r) {
    static const char *const texts[SAMPLE_STATUSES] = {
        [STATUS_RUNNING] = "running",     [STATUS_RUNNABLE] = "runnable",
        [STATUS_WAITING] = "waiting",     [STATUS_COLLECTING] = "garbage_collecting",
        [STATUS_EXITING] = "exiting",     [STATUS_SUSPENDED] = "suspended",
        [STATUS_OTHER] = "another_status"};
    return r->kind == SAMPLE_UNANSWERED ? "did_not_answer" : texts[r->status];
}

// The 123 of <0.123.0>; 0: it is another text.
static unsigned long number_of(const char *pid) {
    const char *point = strchr(pid, '.');
    return point ? strtoul(point + 1, NULL, 10) : 0;
}

bool perf_look(const struct sample_walk *w, enum flame_metric metric, int64_t begin_ns,
               struct buffer *out) {
    uint8_t kind = w->record.kind;
    bool of_looks = metric == FLAME_SAMPLES || metric == FLAME_ACTIVE;
    int64_t value = 0, us = (begin_ns > 0 ? begin_ns / 1000 : 0) + (int64_t)w->us;
    if ((kind != SAMPLE_LOOK && kind != SAMPLE_UNCHANGED && kind != SAMPLE_UNANSWERED) ||
        (kind == SAMPLE_UNANSWERED && !of_looks) || !samples_value(w, metric, &value) ||
        value <= 0) {
        return false;
    }
    const char *pid = w->profile->samples->processes[w->record.process].pid;
    buffer_printf(out, "%s 1/%lu [000] %" PRId64 ".%06" PRId64 ":", command_of(&w->record),
                  number_of(pid), us / 1000000, us % 1000000);
    put_metrics(w, out);
    buffer_printf(out, " %10" PRId64 " %s:\n", value, flame_metric_name(metric));
    put_frames(w, out);
    buffer_text(out, "\n");
    return true;
}

static bool is_asked(const struct flame_drawing *d, const struct sample_walk *w) {
    const char *only = d->weighed.only;
    bool then = w->us >= d->from_us && (d->until_us == 0 || w->us < d->until_us);
    if (!then || !only || w->record.kind == SAMPLE_HELD || w->record.kind == SAMPLE_LATE) {
        return then;
    }
    uint16_t of = w->states[w->record.process].identity;
    const char *identity =
        of == PROFILE_NOBODY ? "_none" : names_text(&d->profile->stacks.names, of);
    return strcmp(identity, only) == 0;
}

static void put_looks(const struct flame_drawing *d, struct buffer *out) {
    struct sample_walk w;
    bool ok = sample_walk_begin(&w, d->profile);
    while (ok && !out->failed && sample_walk_next(&w)) {
        if (is_asked(d, &w)) {
            perf_look(&w, d->weighed.metric, d->started_ns, out);
        }
    }
    out->failed = out->failed || !ok || w.damaged;
    sample_walk_end(&w);
}

// -- full traces ----------------------------------------------------------------------------------

static void put_weight(const struct flame_drawing *d, uint32_t stack, int64_t time, int64_t period,
                       struct buffer *out) {
    enum { SECOND = 1000000000 };
    const struct flame_tree *t = d->tree;
    buffer_printf(out, "kprof 1/1 [000] %" PRId64 ".%09" PRId64 ": %" PRId64 " %s-%s:\n",
                  time / SECOND, time % SECOND, period, flame_metric_name(d->weighed.metric),
                  flame_metric_unit(d->weighed.metric));
    uint32_t node = stack;
    do {
        const struct flame_frame *f = flame_frame_of(t, node);
        buffer_text(out, "\tffffffff ");
        put_name(out, f->name);
        buffer_text(out, " (");
        put_name(out, f->module[0] ? f->module : "kprof");
        buffer_text(out, ")\n");
        node = t->nodes[node].parent;
    } while (node != 0);
    buffer_text(out, "\n");
}

// stackcollapse-perf.pl adds up periods, FlameScope counts samples, speedscope takes the time since
// the one before: so that all see the same, a stack has as many samples as it has of a small
// period, each at its end.
static void put_tree(const struct flame_drawing *d, struct buffer *out) {
    enum { SAMPLES = 5000 };
    const struct flame_tree *t = d->tree;
    int64_t most = t->nodes[0].weight.total / SAMPLES + 1, time = d->started_ns;
    for (uint32_t i = 0; i < t->node_count; i++) {
        int64_t rest = t->nodes[i].weight.self;
        while (rest > 0 && !out->failed) {
            int64_t period = rest < most ? rest : most;
            time += period;
            rest -= period;
            put_weight(d, i, time, period, out);
        }
    }
}

void flame_perf(const struct flame_drawing *d, struct buffer *out) {
    if (d->profile && d->profile->samples) {
        put_looks(d, out);
    } else {
        put_tree(d, out);
    }
}
