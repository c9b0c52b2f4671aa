// SPDX-License-Identifier: Apache-2.0
// Flame graphs as files, in the forms that other programs read:
//
//   .html             the flame viewer with the profile in it, for a browser, from disk: all
//   metrics,
//                     search, zoom, callers and callees; no foreign script
//   .svg              a picture that is searched and zoomed in a browser, from disk; no foreign
//                     script
//   .collapsed        stacks joined with ";", and a number: flamegraph.pl, speedscope, …
//   .speedscope.json  speedscope.app; a profile for each metric, and for the longest request one
//                     for each of its processes
//   .chrome.json      the longest request on a line of time: Perfetto, chrome://tracing
//   .pprof            go tool pprof and what else reads its profiles: all metrics at once; requests
//                     are told apart by labels, never by frames
//   .callgrind        callgrind_annotate, KCachegrind
//   .perf.txt         the text of perf script: FlameScope, stackcollapse-perf.pl. Of samples each
//                     look is there, at its time, with what was seen of the process (perf.h)
#pragma once

#include "base/buffer.h"
#include "model/profile/flame.h"

enum flame_format {
    FLAME_HTML,
    FLAME_SVG,
    FLAME_COLLAPSED,
    FLAME_SPEEDSCOPE,
    FLAME_CHROME,
    FLAME_PPROF,
    FLAME_CALLGRIND,
    FLAME_PERF,
    FLAME_FORMATS
};
// What a file's name ends with, with its point.
const char *flame_format_ending(enum flame_format format);
// The format of a file by the ending of its name, or of the ending itself, with or without its
// point; false: none ends so.
bool flame_format_of(const char *name, enum flame_format *format);

struct flame_drawing {
    const struct flame_tree *tree; // finished; where its metric is wall time all forms are whole
    struct flame_options weighed;  // how
    uint64_t from_us, until_us;    // of samples: the stretch that was weighed; until 0: to the end
    const char *title;             // what it is of: text in one line
    const char *const *notes;      // lines below it, the last one NULL: what it shows, what was cut
    int64_t started_ns;            // since 1970 UTC
    struct profile *profile; // that the tree is of; NULL: no longest request, no .pprof, no .html.
                             // Its samples are weighed again for a .html
    int64_t id;              // its number
    int64_t last_id;         // of several profiles that are one: the last one's; else 0
    bool compared;           // with what was added to the tree as FLAME_BEFORE
    const struct profile *before; // that is: so many profiles
    uint32_t before_count;
    const char *before_name; // "profile 3"
};

// Appends the file. False when the buffer has failed (its cap, or memory).
bool flame_file(const struct flame_drawing *d, enum flame_format format, struct buffer *out);

// The data that the flame viewer draws, as one JSON object: collector/web/page/README.md describes
// it. Of the profile, with all metrics; the drawing's tree is not looked at. Check out->failed.
void flame_view_json(const struct flame_drawing *d, struct buffer *out);
