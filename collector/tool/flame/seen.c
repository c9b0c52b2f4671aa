// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text_amount.h"
#include "tool/flame/print.h"
#include "tool/text.h"

enum { LINE_BYTES = 800, FRAMES = 8 };

static const uint64_t SECOND_US = 1000000;

static void put_line(struct buffer *out, const char *what, char *text) {
    text_clean(text); // names come from the node
    buffer_text(out, "  ");
    text_pad_right(out, what, 12);
    buffer_printf(out, "%s\n", text);
}

static void put_name(const struct process_seen *s, struct buffer *out) {
    char line[LINE_BYTES];
    snprintf(line, sizeof line, "%.120s%s%s%s%.120s%s%.120s%s", s->name, s->name[0] ? " " : "",
             s->pid, s->initial[0] ? ", began with " : "", s->initial,
             s->application[0] ? ", application " : "", s->application,
             s->ended ? "; it has ended" : "");
    text_clean(line);
    buffer_printf(out, "%s\n", line);
}

// Of who does nothing the queue is not asked for: that may be its trouble.
static void put_queue(const struct process_seen *s, struct buffer *out) {
    char line[LINE_BYTES] = "not known", first[TEXT_GROUPED_BYTES], last[TEXT_GROUPED_BYTES],
         most[TEXT_GROUPED_BYTES], rate[TEXT_GROUPED_BYTES];
    const struct seen_value *q = &s->queue;
    double per_s = seen_per_second(q);
    if (q->known) {
        text_grouped((uint64_t)q->first, first);
        text_grouped((uint64_t)q->last, last);
        text_grouped((uint64_t)q->most, most);
        text_grouped((uint64_t)(fabs(per_s) + 0.5), rate);
        int n =
            snprintf(line, sizeof line, "%s -> %s message%s in %.1f s, %s %s a second", first, last,
                     text_plural((uint64_t)q->last), (double)(q->last_us - q->first_us) / 1e6, rate,
                     per_s < 0 ? "fewer" : "more");
        if (q->most > q->first && q->most > q->last) {
            n += snprintf(line + n, sizeof line - (size_t)n, "; at most %s", most);
        }
        if (s->last_us > q->last_us + SECOND_US) {
            snprintf(line + n, sizeof line - (size_t)n,
                     "; not asked for in the %.1f s since: it did nothing",
                     (double)(s->last_us - q->last_us) / 1e6);
        }
    }
    put_line(out, "queue", line);
}

// Tenths of a percent, the most of them what the others leave: together they are 100 %.
static void shares_of(const struct process_seen *s, uint64_t tenths[SAMPLE_STATUSES]) {
    uint64_t left = 1000;
    int most = 0;
    for (int i = 0; i < SAMPLE_STATUSES; i++) {
        most = s->statuses[i] > s->statuses[most] ? i : most;
    }
    for (int i = 0; i < SAMPLE_STATUSES; i++) {
        tenths[i] = i == most ? 0 : (s->statuses[i] * 1000 + s->looks / 2) / s->looks;
        left -= tenths[i] < left ? tenths[i] : left;
    }
    tenths[most] = left;
}

static void put_statuses(const struct process_seen *s, struct buffer *out) {
    char line[LINE_BYTES] = "";
    uint64_t tenths[SAMPLE_STATUSES];
    size_t len = 0;
    shares_of(s, tenths);
    for (int i = 0; i < SAMPLE_STATUSES; i++) {
        if (s->statuses[i] > 0) {
            char share[24] = "<0.1";
            if (tenths[i] > 0) {
                snprintf(share, sizeof share, tenths[i] % 10 > 0 ? "%.1f" : "%.0f",
                         (double)tenths[i] / 10);
            }
            len += (size_t)snprintf(line + len, sizeof line - len, "%s%s %s %%",
                                    len > 0 ? ", " : "", samples_status((uint8_t)i), share);
        }
    }
    put_line(out, "status", line);
}

static void put_numbers(const struct process_seen *s, struct buffer *out) {
    char line[LINE_BYTES], number[TEXT_GROUPED_BYTES];
    char first[TEXT_SIZE_BYTES], last[TEXT_SIZE_BYTES], most[TEXT_SIZE_BYTES];
    snprintf(line, sizeof line, "%s a second",
             text_grouped((uint64_t)(seen_reductions_per_second(s) + 0.5), number));
    put_line(out, "reductions", line);
    const struct seen_value *m = &s->memory;
    if (m->known) {
        bool peak = m->most > m->first && m->most > m->last;
        snprintf(line, sizeof line, "%s -> %s%s%s", text_size((double)m->first, first),
                 text_size((double)m->last, last), peak ? ", at most " : "",
                 peak ? text_size((double)m->most, most) : "");
    } else {
        snprintf(line, sizeof line, "not asked for, as its queue was long");
    }
    put_line(out, "memory", line);
    snprintf(line, sizeof line, "%" PRIu64 " answered, %" PRIu64 " not%s", s->looks, s->unanswered,
             s->unanswered > 0 ? ": it ran native code, or got no turn" : "");
    put_line(out, "looks", line);
}

// Innermost first.
static void put_stack(const struct profile *p, const struct process_seen *s, struct buffer *out) {
    char line[LINE_BYTES], share[TEXT_PERCENT_BYTES];
    uint32_t stack = s->stack, left = FRAMES;
    snprintf(line, sizeof line,
             "in %s of the looks:", text_percent((double)s->stack_looks / (double)s->looks, share));
    put_line(out, "where it is", line);
    for (; stack != STACK_ROOT && left > 0; stack = p->stacks.all[stack].parent, left--) {
        snprintf(line, sizeof line, "%s", stacks_name_of(&p->stacks, stack));
        put_line(out, "", line);
    }
    if (stack != STACK_ROOT) {
        char more[] = "...";
        put_line(out, "", more);
    }
}

void flame_seen(const struct flame_answer *a, struct buffer *out) {
    for (uint32_t i = 0; i < a->seen.count; i++) {
        const struct process_seen *s = &a->seen.of[i];
        put_name(s, out);
        if (s->looks == 0) {
            buffer_printf(out,
                          "  it did not answer any of %" PRIu64 " looks: it ran native code, or "
                          "got no turn\n",
                          s->unanswered);
        } else {
            put_queue(s, out);
            put_statuses(s, out);
            put_numbers(s, out);
            put_stack(&a->profile, s, out);
        }
        buffer_text(out, "\n");
    }
    if (a->seen.more > 0) {
        buffer_printf(out, "and %" PRIu32 " more process%s\n\n", a->seen.more,
                      a->seen.more == 1 ? "" : "es");
    }
}
