// SPDX-License-Identifier: Apache-2.0
// pprof's form: a message in the form of protobuf, behind gzip. Messages of one kind, one behind
// the other, are one message that has all that is in them: so the profile is written piece by
// piece, a text or a stack each, and never stands in memory as a whole.
#include <string.h>
#include <zlib.h>

#include "pprof.pb-c.h"
#include "report/flame/forms.h"

enum {
    PIECE_BYTES = 4096, // a stack of LIMIT_PROFILE_DEPTH frames has less than 1000
    GZIP = 15 + 16,     // zlib's window, and gzip's head and sum around it
    MAPPING = 1         // the node, where a program's file stands
};

// The texts: these, the notes, and the names of the profile.
enum {
    TEXT_NONE,
    TEXT_COUNT,
    TEXT_NANOSECONDS,
    TEXT_BYTES,
    TEXT_IDENTITY,
    TEXT_PROCESS,
    TEXT_NODE,
    TEXT_OF_NODE, // its name
    TEXT_ALL,
    TEXT_METRICS,
    TEXT_TITLE = TEXT_METRICS + FLAME_METRICS,
    TEXT_NOTES
};

// The values of each stack. Who reads no more than one takes the first or the last.
static const enum flame_metric of_full[] = {FLAME_CALLS,  FLAME_SELF, FLAME_WAITING,
                                            FLAME_ASLEEP, FLAME_GC,   FLAME_WALL};
enum { METRICS = sizeof of_full / sizeof *of_full };
_Static_assert((int)METRICS == (int)FLAME_SAMPLES, "all metrics of full traces");

struct writing {
    const struct flame_drawing *d;
    enum flame_metric metrics[METRICS]; // of samples: how many, and the one that was asked for
    uint32_t metric_count;
    z_stream zip;
    int64_t names; // the text of the profile's first name
    struct buffer *out;
};

// -- pieces ---------------------------------------------------------------------------------------

// flush: Z_NO_FLUSH, or Z_FINISH behind the last byte.
static void deflate_into(struct writing *w, uint8_t *bytes, size_t len, int flush) {
    uint8_t zipped[PIECE_BYTES];
    w->zip.next_in = bytes;
    w->zip.avail_in = (uInt)len;
    do {
        w->zip.next_out = zipped;
        w->zip.avail_out = sizeof zipped;
        deflate(&w->zip, flush);
        buffer_append(w->out, zipped, sizeof zipped - w->zip.avail_out);
    } while (w->zip.avail_out == 0 && !w->out->failed);
}

static void put(struct writing *w, const Pprof__Profile *piece) {
    uint8_t bytes[PIECE_BYTES];
    if (pprof__profile__get_packed_size(piece) > sizeof bytes) {
        w->out->failed = true;
        return;
    }
    deflate_into(w, bytes, pprof__profile__pack(piece, bytes), Z_NO_FLUSH);
}

static void put_text(struct writing *w, const char *text) {
    char *texts[] = {(char *)text};
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    piece.n_string_table = 1;
    piece.string_table = texts;
    put(w, &piece);
}

// A function, and the place that is in it, both by the same number.
static void put_function(struct writing *w, uint64_t id, int64_t name, int64_t file) {
    Pprof__Function function = PPROF__FUNCTION__INIT;
    Pprof__Line line = PPROF__LINE__INIT;
    Pprof__Location location = PPROF__LOCATION__INIT;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    function.id = line.function_id = location.id = id;
    location.mapping_id = MAPPING;
    function.name = function.system_name = name;
    function.filename = file;
    location.n_line = 1;
    location.line = (Pprof__Line *[]){&line};
    piece.n_function = piece.n_location = 1;
    piece.function = (Pprof__Function *[]){&function};
    piece.location = (Pprof__Location *[]){&location};
    put(w, &piece);
}

// -- the profile ----------------------------------------------------------------------------------

static void put_texts(struct writing *w) {
    const struct flame_drawing *d = w->d;
    static const char *const fixed[] = {
        [TEXT_NONE] = "",       [TEXT_COUNT] = "count",       [TEXT_NANOSECONDS] = "nanoseconds",
        [TEXT_BYTES] = "bytes", [TEXT_IDENTITY] = "identity", [TEXT_PROCESS] = "process",
        [TEXT_NODE] = "node",
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        put_text(w, fixed[i]);
    }
    put_text(w, d->profile ? d->profile->head.node : "");
    put_text(w, d->tree->frames[0].name);
    for (enum flame_metric m = 0; m < FLAME_METRICS; m++) {
        put_text(w, flame_metric_name(m));
    }
    put_text(w, d->title);
    w->names = TEXT_NOTES;
    for (const char *const *note = d->notes; note && *note; note++, w->names++) {
        put_text(w, *note);
    }
    for (uint32_t i = 0; d->profile && i < d->profile->stacks.names.count; i++) {
        put_text(w, names_text(&d->profile->stacks.names, i));
    }
}

static void put_metrics(struct writing *w) {
    for (uint32_t i = 0; i < w->metric_count; i++) {
        Pprof__ValueType type = PPROF__VALUE_TYPE__INIT;
        Pprof__Profile piece = PPROF__PROFILE__INIT;
        enum flame_metric metric = w->metrics[i];
        bool bytes = strcmp(flame_metric_unit(metric), "bytes") == 0;
        type.type = TEXT_METRICS + metric;
        type.unit = flame_metric_is_time(metric) ? TEXT_NANOSECONDS
                    : bytes                      ? TEXT_BYTES
                                                 : TEXT_COUNT;
        piece.n_sample_type = 1;
        piece.sample_type = (Pprof__ValueType *[]){&type};
        put(w, &piece);
    }
}

static void put_head(struct writing *w) {
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    Pprof__Mapping mapping = PPROF__MAPPING__INIT;
    piece.time_nanos = w->d->started_ns;
    if (w->d->profile) {
        piece.duration_nanos = w->d->profile->head.end_ns - w->d->profile->head.begin_ns;
    }
    piece.default_sample_type = TEXT_METRICS + w->d->weighed.metric;
    mapping.id = MAPPING;
    mapping.filename = TEXT_OF_NODE;
    mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers = true;
    piece.n_mapping = 1;
    piece.mapping = (Pprof__Mapping *[]){&mapping};
    put(w, &piece);
    for (int64_t text = TEXT_TITLE; text < w->names; text++) {
        Pprof__Profile comment = PPROF__PROFILE__INIT;
        comment.n_comment = 1;
        comment.comment = &text;
        put(w, &comment);
    }
}

// Frames by their numbers, plus 1; behind them one for what lies on no function.
static void put_functions(struct writing *w, const struct stacks *s) {
    for (uint32_t i = 0; i < s->frame_count; i++) {
        const struct stack_frame *f = &s->frames[i];
        put_function(w, i + 1, w->names + f->name,
                     f->module == NAME_NONE ? TEXT_NONE : w->names + f->module);
    }
    put_function(w, s->frame_count + 1, TEXT_ALL, TEXT_NONE);
}

static int64_t value_of(const struct weight *weight, enum stack_frame_kind kind,
                        enum flame_metric metric) {
    if (metric >= FLAME_CALLS) {
        return metric == FLAME_CALLS || metric == FLAME_SAMPLES ? (int64_t)weight->calls
                                                                : weight->ns;
    }
    bool special = kind == FRAME_WAITING || kind == FRAME_ASLEEP || kind == FRAME_GC;
    bool wanted = metric == FLAME_WALL      ? true
                  : metric == FLAME_SELF    ? !special
                  : metric == FLAME_WAITING ? kind == FRAME_WAITING
                  : metric == FLAME_ASLEEP  ? kind == FRAME_ASLEEP
                                            : kind == FRAME_GC;
    return wanted ? weight->ns : 0;
}

static void put_stack(struct writing *w, const struct stacks *s, const struct weight *weight) {
    uint64_t places[STACK_DEEPEST];
    int64_t values[METRICS];
    Pprof__Label labels[] = {PPROF__LABEL__INIT, PPROF__LABEL__INIT, PPROF__LABEL__INIT};
    Pprof__Sample sample = PPROF__SAMPLE__INIT;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    uint16_t identity = profile_key_identity(weight->key),
             process = profile_key_process(weight->key);
    uint32_t stack = profile_key_stack(weight->key);
    enum stack_frame_kind kind = stacks_frame_of(s, stack)->kind;
    for (uint32_t i = 0; i < w->metric_count; i++) {
        values[i] = value_of(weight, kind, w->metrics[i]);
    }
    for (; stack != STACK_ROOT; stack = s->all[stack].parent) {
        places[sample.n_location_id++] = s->all[stack].frame + 1;
    }
    if (sample.n_location_id == 0) {
        places[sample.n_location_id++] = s->frame_count + 1;
    }
    sample.location_id = places;
    sample.n_value = w->metric_count;
    sample.value = values;
    sample.label = (Pprof__Label *[]){&labels[0], &labels[1], &labels[2]};
    labels[sample.n_label].key = TEXT_NODE;
    labels[sample.n_label++].str = TEXT_OF_NODE;
    if (identity != PROFILE_NOBODY) {
        labels[sample.n_label].key = TEXT_IDENTITY;
        labels[sample.n_label++].str = w->names + identity;
    }
    if (process != PROFILE_NOBODY) {
        labels[sample.n_label].key = TEXT_PROCESS;
        labels[sample.n_label++].str = w->names + process;
    }
    piece.n_sample = 1;
    piece.sample = (Pprof__Sample *[]){&sample};
    put(w, &piece);
}

static void put_stacks(struct writing *w, const struct profile *p) {
    const struct flame_options *o = &w->d->weighed;
    uint32_t only = o->only ? names_find(&p->stacks.names, slice_text(o->only)) : NAME_NONE;
    for (uint32_t i = 0; i < p->weights.count && !w->out->failed; i++) {
        const struct weight *weight = &p->weights.all[i];
        bool asleep =
            stacks_frame_of(&p->stacks, profile_key_stack(weight->key))->kind == FRAME_ASLEEP;
        bool nothing = weight->calls == 0 && weight->ns == 0;
        if (!nothing && (!o->only || profile_key_identity(weight->key) == only) &&
            !(o->no_asleep && asleep)) {
            put_stack(w, &p->stacks, weight);
        }
    }
}

void flame_pprof(const struct flame_drawing *d, struct buffer *out) {
    struct writing w = {.d = d, .out = out, .metric_count = METRICS};
    memcpy(w.metrics, of_full, sizeof of_full);
    if (d->profile && d->profile->samples) {
        w.metrics[0] = FLAME_SAMPLES;
        w.metrics[1] = d->weighed.metric;
        w.metric_count = d->weighed.metric == FLAME_SAMPLES ? 1 : 2;
    }
    if (deflateInit2(&w.zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        out->failed = true;
        return;
    }
    put_texts(&w);
    put_metrics(&w);
    put_head(&w);
    if (d->profile) {
        put_functions(&w, &d->profile->stacks);
        put_stacks(&w, d->profile);
    }
    deflate_into(&w, NULL, 0, Z_FINISH);
    deflateEnd(&w.zip);
}
