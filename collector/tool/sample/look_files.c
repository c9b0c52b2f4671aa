// SPDX-License-Identifier: Apache-2.0
#include "tool/sample/look_files.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text_amount.h"
#include "report/perf.h"
#include "tool/command.h"
#include "tool/text.h"

// A run that begins after 2090 is none: with the time of its looks added, ns do not fit 63 bits.
static const int64_t LATEST_NS = INT64_C(3800000000) * 1000000000;

int look_files_begin(struct look_files *f, const struct rotation_options *o,
                     enum flame_metric metric) {
    *f = (struct look_files){.command = o->command, .metric = metric};
    f->look = buffer_make(ROTATION_PIECE_BYTES);
    int status = rotation_begin(&f->rotation, o);
    if (status == EXIT_SUCCESS && !sample_stream_begin(&f->stream)) {
        status = command_fail(o->command, EXIT_FAILURE, "no memory");
    }
    return status;
}

void look_files_end(struct look_files *f) {
    sample_stream_end(&f->stream);
    rotation_end(&f->rotation);
    buffer_free(&f->look);
}

// -- taking ---------------------------------------------------------------------------------------

static bool see(void *user, const struct sample_walk *w, uint64_t from_us) {
    struct look_files *f = user;
    int64_t from_ns = f->begin_ns + (int64_t)from_us * 1000;
    buffer_reset(&f->look);
    if (!perf_look(w, f->metric, from_ns, &f->look)) {
        return true;
    }
    return rotation_put(&f->rotation, slice_of(f->look.data, f->look.len),
                        from_ns + (int64_t)w->us * 1000, f->now_ns);
}

static bool begin(struct look_files *f, struct control_map message) {
    struct slice node = slice_text("");
    char name[ROTATION_NODE_BYTES];
    control_get_text(message, FIELD_NODE, &node);
    snprintf(name, sizeof name, "%.*s", (int)(node.len < sizeof name ? node.len : sizeof name - 1),
             node.data ? (const char *)node.data : "");
    f->begun = control_get_int(message, FIELD_AT, &f->begin_ns) && f->begin_ns > 0 &&
               f->begin_ns < LATEST_NS;
    if (f->begun) {
        rotation_of(&f->rotation, name, f->begin_ns);
    }
    return f->begun;
}

bool look_files_take(struct look_files *f, struct control_map message, int64_t now_ns) {
    const struct sample_eye eye = {f, see};
    struct slice records;
    enum stream_status status = STREAM_DAMAGED;
    f->now_ns = now_ns;
    if ((f->begun || begin(f, message)) && control_get_bytes(message, FIELD_BYTES, &records)) {
        status = sample_stream_take(&f->stream, records, &eye);
    }
    if (status == STREAM_DAMAGED) {
        command_fail(f->command, EXIT_FAILURE,
                     "what the collector sends are no samples; is it of another release?");
    } else if (status == STREAM_NO_MEMORY) {
        command_fail(f->command, EXIT_FAILURE, "no memory");
    } // else a file has told
    return status == STREAM_TAKEN;
}

bool look_files_close(struct look_files *f) {
    return rotation_close(&f->rotation);
}

// -- telling --------------------------------------------------------------------------------------

static void tell_lost(uint64_t looks, const char *why) {
    char text[TEXT_GROUPED_BYTES];
    if (looks > 0) {
        printf("%s look%s lost: %s\n", text_grouped(looks, text), looks == 1 ? " was" : "s were",
               why);
    }
}

void look_files_tell(const struct look_files *f, uint64_t looks, uint64_t lost) {
    const struct rotation *r = &f->rotation;
    char written[TEXT_GROUPED_BYTES], all[TEXT_GROUPED_BYTES];
    printf("wrote %s of %s look%s into %" PRIu64 " file%s in %s, the last one %s",
           text_grouped(r->written, written), text_grouped(looks, all), text_plural(looks), r->made,
           text_plural(r->made), r->o->folder, rotation_newest(r));
    if (r->first > 1) {
        printf("; the oldest %" PRIu64 " of them were removed", r->first);
    } else if (r->first == 1) {
        printf("; the oldest of them was removed");
    }
    printf("\n");
    tell_lost(lost, "this command did not read them in time");
    tell_lost(f->stream.lost, "of too many processes");
    if (f->stream.full) {
        printf("there were too many stacks: some lack their innermost frames\n");
    }
}
