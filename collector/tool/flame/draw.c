// SPDX-License-Identifier: Apache-2.0
#include "tool/flame/draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tool/command.h"
#include "tool/flame/print.h"
#include "tool/text.h"

enum { OUTPUT_BYTES = 512 << 20, FUNCTIONS = 20, CALLS = 40 };

static int make_file(const struct draw_options *o, uint32_t i, const struct flame_answer *a) {
    const char *name = o->files[i].name;
    struct buffer out = buffer_make(OUTPUT_BYTES);
    flame_file(&a->drawing, o->files[i].format, &out);
    int status =
        out.failed && out.len > OUTPUT_BYTES / 2
            ? command_fail("flame", EXIT_FAILURE,
                           "%s would be larger than %d MB: a stretch, by --from and --to, is less",
                           name, OUTPUT_BYTES >> 20)
            : command_write("flame", name, &out);
    if (status == EXIT_SUCCESS && !o->json) {
        printf("wrote %s\n", name);
    }
    buffer_free(&out);
    return status;
}

static void put_lines(const struct flame_lines *lines, struct buffer *out) {
    for (uint32_t i = 0; i < lines->count; i++) {
        char text[FLAME_NOTE_BYTES];
        memcpy(text, lines->text[i], sizeof text);
        text_clean(text);
        buffer_printf(out, "%s\n", text);
    }
}

static int print(const struct draw_options *o, const struct flame_answer *a) {
    struct buffer out = buffer_make(OUTPUT_BYTES);
    if (o->json) {
        flame_json(a, &out);
    } else {
        put_lines(&a->notes, &out);
        put_lines(&a->told, &out);
        buffer_text(&out, "\n");
        flame_seen(a, &out);
        flame_table(a, o->most ? o->most : FUNCTIONS, &out);
    }
    return command_print("flame", &out);
}

static int print_request(const struct draw_options *o, const struct flame_answer *a) {
    const struct waterfall_style style = waterfall_style(o->width);
    struct buffer out = buffer_make(OUTPUT_BYTES);
    struct longest longest;
    if (!longest_calls(&a->profile, o->json ? UINT32_MAX : o->most ? o->most : CALLS, &longest)) {
        out.failed = true;
    } else if (o->json) {
        longest_json(&longest, a->id, &out);
    } else {
        flame_request(&longest, a->id, &style, &out);
    }
    longest_free(&longest);
    return command_print("flame", &out);
}

static int draw(const struct draw_options *o, const struct flame_answer *a) {
    if (a->tree.nodes[0].weight.total == 0 && a->tree.nodes[0].before.total == 0) {
        return command_fail("flame", EXIT_FAILURE,
                            "nothing in profile %s weighs anything by %s%s%s", o->question.profile,
                            flame_metric_name(o->question.weighed.metric),
                            o->question.weighed.only ? " in requests of " : "",
                            o->question.weighed.only ? o->question.weighed.only : "");
    }
    if (o->waterfall && a->profile.timeline.count == 0) {
        return command_fail("flame", EXIT_FAILURE, "profile %s keeps no request on a line of time",
                            o->question.profile);
    }
    const char *of = names_text(&a->profile.stacks.names, a->profile.timeline_identity);
    const char *only = o->question.weighed.only;
    if (o->waterfall && only && of[0] && strcmp(of, only) != 0) {
        return command_fail("flame", EXIT_FAILURE,
                            "profile %s keeps its longest request alone, which is of %s",
                            o->question.profile, of);
    }
    int status = (o->waterfall ? print_request : print)(o, a);
    for (uint32_t i = 0; status == EXIT_SUCCESS && i < o->file_count; i++) {
        status = make_file(o, i, a);
    }
    return status;
}

static int none(const struct draw_options *o, const char *profile) {
    return command_fail("flame", EXIT_FAILURE,
                        "%s keeps no profile %s; kprof profiles --db FILE lists those there are",
                        o->db, profile);
}

static int other_kind(const struct draw_options *o) {
    bool samples = flame_metric_is_of(o->question.weighed.metric, PROFILE_SAMPLES);
    return command_fail(
        "flame", EXIT_FAILURE, "--metric %s is of %s, and profile %s%s%s is of the other kind",
        flame_metric_name(o->question.weighed.metric), samples ? "samples" : "full traces",
        o->question.profile, o->question.before ? " or " : "",
        o->question.before ? o->question.before : "");
}

int draw_profile(const struct draw_options *o) {
    static struct flame_answer answer; // large
    struct store *store;
    char error[STORE_ERROR_BYTES];
    int status;
    if (store_open_reader(o->db, &store, error) != STORE_OK) {
        return command_fail("flame", EXIT_FAILURE, "%s", error);
    }
    switch (flame_ask(store, &o->question, &answer)) {
    case FLAME_FOUND:
        status = draw(o, &answer);
        break;
    case FLAME_NONE:
        status = none(o, o->question.profile);
        break;
    case FLAME_NONE_BEFORE:
        status = o->question.before
                     ? none(o, o->question.before)
                     : command_fail("flame", EXIT_FAILURE,
                                    "%s keeps no other profile of this node that ended in that "
                                    "time; kprof profiles --db FILE lists those there are",
                                    o->db);
        break;
    case FLAME_UNREAD:
        status =
            command_fail("flame", EXIT_FAILURE, "cannot read %s (%s)", o->db, store_error(store));
        break;
    case FLAME_OTHER_KIND:
        status = other_kind(o);
        break;
    case FLAME_OTHER_GROUP:
        status = command_fail("flame", EXIT_FAILURE,
                              "--group %s is of samples, and profile %s is a "
                              "full trace",
                              flame_group_name(o->question.weighed.group), o->question.profile);
        break;
    case FLAME_NO_PARTS:
        status = command_fail("flame", EXIT_FAILURE,
                              "--from, --to and --through are of samples, and profile %s "
                              "is a full trace",
                              o->question.profile);
        break;
    case FLAME_NOT_THROUGH:
        status = command_fail("flame", EXIT_FAILURE,
                              "--through and --before-through want a later profile of samples, of "
                              "the same node and under the same label");
        break;
    default:
        status = command_fail("flame", EXIT_FAILURE, "no memory");
    }
    flame_answer_free(&answer);
    store_close(store);
    return status;
}

int draw_kept(struct draw_options *o, int64_t profile) {
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, profile);
    if (!o->db) {
        printf("kept as profile %s; kprof flame --profile %s --db FILE --out FILE.svg draws it\n",
               number, number);
        return EXIT_SUCCESS;
    }
    o->question.profile = number;
    return draw_profile(o);
}
