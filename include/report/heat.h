// SPDX-License-Identifier: Apache-2.0
// A heat map that is asked for, with what is to be known of it. The tool prints it or makes a
// picture, the page draws it. One thread at a time.
#pragma once

#include "model/profile/heat.h"
#include "report/flame.h"

// Of pictures; of the maps of a file there is one for each metric, so they are smaller. Those of a
// stretch have a day in columns of two minutes.
enum {
    HEAT_PICTURE_COLUMNS = 360,
    HEAT_STRETCH_COLUMNS = 720,
    HEAT_FILE_COLUMNS = 120,
    HEAT_PICTURE_ROWS = 50
};
_Static_assert(HEAT_STRETCH_COLUMNS <= LIMIT_HEAT_COLUMNS, "memory of a map is bounded");

struct heat_question {
    const char *profile; // a number, or the name that it was asked for by
    struct heat_choice choice;
};

// Or the samples of a node in some time, of all profiles of a label: those of a sampler that
// stands.
struct heat_stretch {
    const char *node, *label;  // whole
    int64_t from_s, until_s;   // seconds since 1970 UTC
    struct heat_choice choice; // its times are not read
};

// A profile of several, from the map's time 0 on.
struct heat_piece {
    int64_t id, from_us, until_us;
};
enum { HEAT_MOST_PIECES = 400 };

struct heat_answer {
    int64_t id; // 0: several profiles, of which only head is filled in below
    struct profile profile;
    int64_t started_ns;        // the map's time 0, since 1970 UTC: the profile's begin, or that of
    struct heat_piece *pieces; // the day, from which on several profiles have their times
    uint32_t piece_count;
    struct heat heat;
    char title[FLAME_NOTE_BYTES];
    struct flame_lines notes; // what it is of, and what it lacks
};

enum heat_found {
    HEAT_FOUND,
    HEAT_NONE,       // there is no such profile
    HEAT_FULL_TRACE, // it is one, and has no samples
    HEAT_NOT_THEN,   // the stretch is none of its time; heat.length_us tells how long that is
    HEAT_UNREAD,     // store_error says why
    HEAT_FAILED      // no memory
};

// Answers. Give the answer back with heat_answer_free, whatever came of it.
enum heat_found heat_ask(struct store *s, const struct heat_question *question,
                         struct heat_answer *out);
// The same of several: HEAT_NONE where there are none in that time.
enum heat_found heat_ask_stretch(struct store *s, const struct heat_stretch *stretch,
                                 struct heat_answer *out);
void heat_answer_free(struct heat_answer *a);

// How hot: "57 samples", "1.2 MB". Returns out.
enum { HEAT_VALUE_BYTES = 64 };
char *heat_value_text(const struct heat *h, int64_t value, char out[HEAT_VALUE_BYTES]);
// What the cells of a state are, in words for a legend: "idle: …".
const char *heat_state_text(const struct heat *h, enum heat_state state);
// A time as --from takes it: "90s", "1.5s". Returns out.
enum { HEAT_TIME_BYTES = 32 };
char *heat_time_text(uint64_t us, char out[HEAT_TIME_BYTES]);
// A time of the map as its axis has it: "2h", or of several profiles the time of day, UTC, "14:05".
// Returns out.
char *heat_axis_text(const struct heat_answer *a, uint64_t us, char out[HEAT_TIME_BYTES]);
// A round number of columns between the marks of an axis of so many marks at most.
uint32_t heat_marks(const struct heat *h, uint32_t most);

// JSON, described in kprof heat --help: one object and a newline. Check out->failed.
void heat_json(const struct heat_answer *a, struct buffer *out);
// A picture for browsers, from disk: it names the range under the pointer, and the one that a drag
// chooses. Likewise.
void heat_svg(const struct heat_answer *a, struct buffer *out);
