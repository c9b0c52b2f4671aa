// SPDX-License-Identifier: Apache-2.0
// A profile that is asked for, weighed as a tree, with what is to be known of it. The tool prints
// it, the page draws it, flame_file.h makes files of it. One thread at a time.
#pragma once

#include "report/flame_file.h"
#include "report/processes_seen.h"
#include "store/query_profile.h"

struct flame_question {
    const char *profile; // a number, or the name that it was asked for by
    const char *before;  // another one, to compare with; NULL: none
    // or all of its node that ended in that time, but not itself; until 0: none
    int64_t before_from_s, before_until_s;
    struct flame_options weighed; // what of it
    // of samples: the last of several profiles, a number; all are drawn that its node has made
    // under their label from `profile` to it, as one that begins where that does. NULL: one profile
    const char *through, *before_through;
    // of samples: a part, from the profile's begin; until 0: to its end
    uint64_t from_us, until_us;
    // and of what it is compared with, if that is another one; both 0: the same
    uint64_t before_from_us, before_until_us;
    bool seen; // of samples: what single processes did is told, too
};

enum { FLAME_NOTES = 12, FLAME_TOLD = 40, FLAME_NOTE_BYTES = 400, FLAME_MOST_BEFORE = 64 };

// Lines of text, without their newlines.
struct flame_lines {
    char text[FLAME_TOLD][FLAME_NOTE_BYTES];
    uint32_t count, most;
};

// What a profile has cost, at the end of `told`, as far as it is known.
void flame_cost(const struct profile *p, struct flame_lines *told);

struct flame_answer {
    int64_t id;
    int64_t last_id; // of several profiles that are drawn as one: the last; else 0
    struct profile profile;
    int64_t before_ids[FLAME_MOST_BEFORE]; // that it is compared with
    struct profile *before;                // of before_count
    int64_t before_last_id;                // as last_id
    uint32_t before_count;
    char before_name[128]; // what they are called together
    struct flame_tree tree;
    struct flame_function *functions; // of it, by frame
    char title[FLAME_NOTE_BYTES];
    struct flame_lines notes;                // what the times are of, and what they lack
    struct flame_lines told;                 // and what it has cost, which no picture shows
    const char *note_lines[FLAME_NOTES + 1]; // the notes, and NULL
    struct flame_drawing drawing;            // of all that, for flame_file
    struct processes_seen seen;              // none: was not asked for
};

enum flame_found {
    FLAME_FOUND,
    FLAME_NONE,        // there is no such profile
    FLAME_NONE_BEFORE, // or none to compare with
    FLAME_UNREAD,      // store_error says why
    FLAME_OTHER_KIND, // its kind of profile has no such metric, or what it is compared with has not
    FLAME_OTHER_GROUP, // or no such group,
    FLAME_NO_PARTS,    // or no parts: it is a full trace
    FLAME_NOT_THROUGH, // the last one is none of the same node and label that came later
    FLAME_NO_MEMORY
};

// Answers. The answer must not be moved; give it back with flame_answer_free, whatever came of it.
enum flame_found flame_ask(struct store *s, const struct flame_question *question,
                           struct flame_answer *out);
void flame_answer_free(struct flame_answer *a);

// The functions in the order in which they matter: the heaviest by themselves first or, where two
// profiles are compared, those whose own time has changed most. By frame; free() it. NULL without
// memory. Frames that weigh nothing are not among them.
uint32_t *flame_ranked(const struct flame_answer *a, uint32_t *count);
// How much a weight of the profile before counts, so that both are as heavy; 1 without one.
double flame_scale(const struct flame_answer *a);

// JSON: the profiles there are; one profile with its stacks, depth first. One object and a newline
// each, described in kprof profiles --help and kprof flame --help. Check out->failed.
void flame_list_json(const struct profile_list *list, struct buffer *out);
void flame_json(const struct flame_answer *a, struct buffer *out);
