// SPDX-License-Identifier: Apache-2.0
#include "report/flame/notes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text_amount.h"
#include "model/profile/sample_labels.h"
#include "model/profile/sample_weights.h"
#include "report/heat.h"

void notes_add(struct flame_lines *lines, const char *format, ...) {
    if (lines->count < lines->most) {
        va_list args;
        va_start(args, format);
        vsnprintf(lines->text[lines->count++], FLAME_NOTE_BYTES, format, args);
        va_end(args);
    }
}

bool notes_in_self(const struct profile_head *h, bool waiting, char out[FLAME_NOTE_BYTES]) {
    const char *otp = h->otp[0] ? ", OTP " : "";
    out[0] = 0;
    if (h->asleep_in_self) {
        snprintf(out, FLAME_NOTE_BYTES,
                 "%s and garbage collection are within self: tracing them is not safe on the "
                 "node's release%s%s (otp#6448)",
                 waiting ? "Waiting, time asleep" : "Time asleep", otp, h->otp);
    } else if (h->gc_in_self) {
        snprintf(out, FLAME_NOTE_BYTES,
                 "Garbage collection is within self: tracing it is not safe on the node's "
                 "release%s%s (otp#11624)",
                 otp, h->otp);
    }
    return out[0] != 0;
}

static void put_in_self(struct flame_lines *n, const struct profile_head *h) {
    char text[FLAME_NOTE_BYTES];
    if (notes_in_self(h, false, text)) {
        notes_add(n, "%s", text);
    }
}

// The notes name the first one.
static void put_missed(struct flame_answer *a) {
    const struct profile *p = &a->profile;
    for (uint32_t i = 0; i < p->missed_count; i++) {
        const struct profile_missed *m = &p->missed[i];
        notes_add(i == 0 ? &a->notes : &a->told,
                  "Not followed into %s%s%s: it had no flag yet; %" PRIu64 " of %" PRIu64
                  " request%s",
                  m->pid, m->name[0] ? " " : "", m->name, m->requests, p->counts.requests,
                  text_plural(p->counts.requests));
    }
    if (p->missed_count > 1) {
        notes_add(&a->notes, "Nor into %" PRIu32 " other process%s", p->missed_count - 1,
                  p->missed_count == 2 ? "" : "es");
    }
}

// How much longer requests took.
static void put_longer(struct flame_lines *told, const struct profile *p) {
    enum { MOST = 5 };
    for (uint32_t i = 0; i < p->identity_count && i < MOST; i++) {
        const struct profile_identity *of = &p->identities[i];
        char mean[TEXT_DURATION_BYTES], others[TEXT_DURATION_BYTES];
        const char *name = names_text(&p->stacks.names, of->name);
        text_duration((double)of->ns / (double)of->requests, mean);
        if (of->others > 0) {
            text_duration((double)of->others_ns / (double)of->others, others);
            notes_add(told,
                      "%.200s: %" PRIu64 " request%s, mean %s; %" PRIu64
                      " that only the tiers traced, "
                      "mean %s",
                      name, of->requests, text_plural(of->requests), mean, of->others, others);
        } else {
            notes_add(told,
                      "%.200s: %" PRIu64 " request%s, mean %s; none that only the tiers traced, to "
                      "compare with",
                      name, of->requests, text_plural(of->requests), mean);
        }
    }
    if (p->identity_count > MOST) {
        notes_add(told, "and %" PRIu32 " more identities", p->identity_count - MOST);
    }
}

void flame_cost(const struct profile *p, struct flame_lines *told) {
    const struct profile_counts *c = &p->counts;
    char stood[TEXT_DURATION_BYTES], size[TEXT_SIZE_BYTES], count[TEXT_GROUPED_BYTES];
    if (c->stood_ns == 0) {
        return; // not known
    }
    text_duration((double)c->stood_ns, stood);
    notes_add(told, "It cost %s messages, %s; %" PRIu64 " functions had patterns for %s%s",
              text_grouped(c->messages, count), text_size((double)c->bytes, size), c->functions,
              stood, c->rested ? ", and the tiers were not traced meanwhile" : "");
    put_longer(told, p);
}

static bool is_gone(const struct flame_answer *a, uint32_t frame) {
    const struct flame_function *f = &a->functions[frame];
    return a->tree.frames[frame].kind == FRAME_FUNCTION && f->weight.total == 0 &&
           f->before.total > 0;
}

// Functions that were there before and are no more, which a picture of this profile does not show:
// the heaviest of them, with their shares of before.
static void put_gone(struct flame_answer *a) {
    enum { MOST = 5, NONE = -1 };
    char text[FLAME_NOTE_BYTES] = "";
    uint32_t gone = 0, told = 0;
    size_t len = 0;
    for (uint32_t i = 0; i < a->tree.frame_count; i++) {
        gone += is_gone(a, i);
    }
    for (int64_t last = NONE, heavy; told < gone && told < MOST; told++, last = heavy) {
        heavy = NONE;
        for (uint32_t i = 0; i < a->tree.frame_count; i++) {
            int64_t before = a->functions[i].before.total;
            bool behind = last == NONE || before < a->functions[last].before.total ||
                          (before == a->functions[last].before.total && i > last);
            if (is_gone(a, i) && behind &&
                (heavy == NONE || before > a->functions[heavy].before.total)) {
                heavy = i;
            }
        }
        int n = snprintf(text + len, sizeof text - len, "%s%.60s (%.1f %%)", told > 0 ? ", " : "",
                         a->tree.frames[heavy].name,
                         100 * (double)a->functions[heavy].before.total /
                             (double)a->tree.nodes[0].before.total);
        len += n > 0 ? (size_t)n : 0;
    }
    if (gone > told) {
        notes_add(&a->notes, "Gone: %s and %" PRIu32 " more", text, gone - told);
    } else if (gone > 0) {
        notes_add(&a->notes, "Gone: %s", text);
    }
}

void notes_sampled(const struct profile *p, int64_t id, int64_t last, enum flame_metric metric,
                   struct flame_lines *n) {
    const struct sample_counts *c = &p->samples->counts;
    char cost[TEXT_DURATION_BYTES], held[TEXT_DURATION_BYTES], through[32] = "";
    double run_us = (double)(p->head.end_ns - p->head.begin_ns) / 1000;
    if (last > 0) {
        snprintf(through, sizeof through, " to %" PRId64, last);
    }
    notes_add(n,
              "Profile%s %" PRId64 "%s: %" PRIu64 " looks at %" PRIu32 " process%s, %" PRIu64
              " of them unchanged since the look before",
              last > 0 ? "s" : "", id, through, c->looks + c->unchanged, p->samples->process_count,
              p->samples->process_count == 1 ? "" : "es", c->unchanged);
    notes_add(
        n,
        "A stack is taken where a process yields or waits: native code shows at what comes next");
    if (metric != FLAME_SAMPLES && metric != FLAME_ACTIVE && !samples_is_level(metric)) {
        notes_add(
            n, "What changed since the look before counts where the process was then found: often "
               "where it waits again");
    }
    if (c->unanswered > 0) {
        notes_add(n,
                  "%" PRIu64
                  " time%s a process did not answer: it was in native code, or did not get to "
                  "run",
                  c->unanswered, text_plural(c->unanswered));
    }
    if (c->cut > 0) {
        notes_add(n, "%" PRIu64 " stacks are cut at 64 frames", c->cut);
    }
    if (c->held_us + c->late_us > 0) {
        text_duration((double)c->held_us * 1000, held);
        notes_add(
            n,
            "For %s the sampler held itself back, to keep to its budget; for %s the node had no "
            "time for it",
            held, text_duration((double)c->late_us * 1000, cost));
    }
    if (last == 0) {
        notes_add(n, "By its own count it took %s of processor time, %.2f %% of one processor",
                  text_duration((double)c->cost_us * 1000, cost),
                  run_us > 0 ? 100 * (double)c->cost_us / run_us : 0.0);
    }
}

char *notes_part(uint64_t from_us, uint64_t until_us, char out[NOTES_PART_BYTES]) {
    char from[HEAT_TIME_BYTES], until[HEAT_TIME_BYTES] = "its end";
    if (until_us > 0) {
        heat_time_text(until_us, until);
    }
    snprintf(out, NOTES_PART_BYTES, "%s to %s", heat_time_text(from_us, from), until);
    return out;
}

// Several profiles together hold more than one.
static void put_full(struct flame_lines *n, const struct flame_answer *a) {
    char until[HEAT_TIME_BYTES];
    if (a->last_id > 0 && a->profile.samples->full) {
        const struct profile_head *h = &a->profile.head;
        notes_add(n, "It is more than one picture takes: what comes after %s is left out",
                  heat_time_text((uint64_t)(h->end_ns - h->begin_ns) / 1000, until));
    }
}

static void put_part(struct flame_lines *n, const struct flame_question *q) {
    char part[NOTES_PART_BYTES];
    if ((q->from_us | q->until_us) != 0) {
        notes_add(n, "Drawn is a part of it: %s", notes_part(q->from_us, q->until_us, part));
    }
    if ((q->before_from_us | q->before_until_us) != 0) {
        notes_add(n, "Compared with another part: %s",
                  notes_part(q->before_from_us, q->before_until_us, part));
    }
}

// Whose work it was, and of how many looks that is not known.
static void put_whose(struct flame_lines *n, const struct profile *p) {
    uint32_t not_known = names_find(&p->stacks.names, slice_text(SAMPLE_NOT_KNOWN));
    int64_t looks = 0;
    for (uint32_t i = 0; p->samples->values && i < p->weights.count; i++) {
        looks += profile_key_identity(p->weights.all[i].key) == not_known
                     ? p->samples->values[(size_t)i * SAMPLE_METRICS]
                     : 0;
    }
    notes_add(n, "Whose work it was tells the token that a process held: " SAMPLE_ENDED
                 " is one of a request that was over by then, _none is no token");
    if (looks > 0) {
        notes_add(n,
                  "%" PRId64 " look%s of " SAMPLE_NOT_KNOWN
                  ": the request had no name yet at the run's end, or was not seen",
                  looks, looks == 1 ? " is" : "s are");
    }
}

static void put_notes(struct flame_answer *a, const struct flame_question *q) {
    const struct profile_counts *c = &a->profile.counts;
    struct flame_lines *n = &a->notes;
    char one[TEXT_DURATION_BYTES];
    if (a->profile.samples) {
        notes_sampled(&a->profile, a->id, a->last_id, q->weighed.metric, n);
        put_full(n, a);
        put_part(n, q);
        if (q->weighed.group == FLAME_BY_IDENTITY || q->weighed.only) {
            put_whose(n, &a->profile);
        }
    } else {
        notes_add(
            n, "Profile %" PRId64 ": %" PRIu64 " request%s, together %s, in %" PRIu64 " process%s",
            a->id, c->requests, text_plural(c->requests),
            text_duration((double)c->duration_ns, one), c->processes,
            c->processes == 1 ? "" : "es");
        put_in_self(n, &a->profile.head);
    }
    if (c->parallel_ns > 0) {
        notes_add(n, "%s more ran in parallel", text_duration((double)c->parallel_ns, one));
    }
    if (c->missing_ns > 0) {
        notes_add(n, "Of %s nothing is known: they passed in processes that were not followed",
                  text_duration((double)c->missing_ns, one));
    }
    if (c->incomplete + c->refused > 0) {
        notes_add(n,
                  "Left out: %" PRIu64 " request%s of which messages were lost or could not be "
                  "joined, %" PRIu64 " for which there was no room",
                  c->incomplete, text_plural(c->incomplete), c->refused);
    }
    put_missed(a);
    if (a->profile.stacks.full) {
        notes_add(n, "Too many stacks: some count as the function below them");
    }
    if (q->weighed.group == FLAME_BY_PROCESS && !a->profile.samples &&
        a->profile.of_processes == 0) {
        notes_add(n, "Which processes ran is not known: an older version has kept this profile");
    }
    if (q->weighed.metric == FLAME_WALL && q->weighed.no_asleep) {
        notes_add(n, "What processes slept is left out");
    }
    if (a->before_count == 1) {
        notes_add(n,
                  "Compared with profile %" PRId64 ": red is more, blue is less; widths are of "
                  "profile %" PRId64 ", both as heavy in all",
                  a->before_ids[0], a->id);
    } else if (a->before_count > 1) {
        notes_add(n,
                  "Compared with %" PRIu32 " profiles, %" PRId64 " to %" PRId64
                  ": red is more, blue is less; widths are of profile %" PRId64
                  ", both as heavy in all",
                  a->before_count, a->before_ids[a->before_count - 1], a->before_ids[0], a->id);
    }
}

void notes_put(struct flame_answer *a, const struct flame_question *q) {
    a->notes.most = FLAME_NOTES;
    a->told.most = FLAME_TOLD;
    put_notes(a, q);
    if (a->before_count > 0) {
        put_gone(a);
    }
    flame_cost(&a->profile, &a->told);
    for (uint32_t i = 0; i < a->notes.count; i++) {
        a->note_lines[i] = a->notes.text[i];
    }
}
