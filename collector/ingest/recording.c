// SPDX-License-Identifier: Apache-2.0
#include "ingest/recording.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text_time.h"
#include "codec/frame.h"
#include "model/message/message_values.h"
#include "model/message/native.h"

enum { SAME_NAMES = 1000 }; // streams of a node that begin within one second

struct recording {
    FILE *file; // NULL after an error
    char path[4096];
    bool values;
    bool over; // no trace stream any more
    struct message_reader reader;
    struct native_reader *native; // NULL: no block has come
    struct buffer partial;        // the start of a frame whose rest is still to come
    struct buffer body;           // one without values
    struct frame_place place;
};

// A node's name as part of a file's: what could leave the folder or hide the file becomes '_'.
static void file_name(const char *node, char *out, size_t size) {
    size_t i = 0;
    for (; node[i] && i + 1 < size; i++) {
        unsigned char c = (unsigned char)node[i];
        out[i] = isalnum(c) || c == '@' || c == '-' || (c == '.' && i > 0) ? (char)c : '_';
    }
    out[i] = 0;
}

// A descriptor of a new file, with its path; -1 and errno.
static int open_new(struct recording *r, const char *dir, const char *node, int64_t session,
                    int64_t now) {
    char name[128], when[TEXT_TIME_BYTES], number[16] = "";
    file_name(node, name, sizeof name);
    text_time_format(now, false, when);
    for (int i = 2;; i++) {
        int n = snprintf(r->path, sizeof r->path, "%s/%s-%s-%" PRId64 "%s.cap", dir, name, when,
                         session, number);
        if (n < 0 || (size_t)n >= sizeof r->path) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(r->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST || i > SAME_NAMES) {
            return fd;
        }
        snprintf(number, sizeof number, ".%d",
                 i); // a stream that was reopened, or another collector's
    }
}

struct recording *recording_start(const struct recording_place *place, const char *node,
                                  int64_t session, int64_t now) {
    struct recording *r = calloc(1, sizeof *r);
    if (!r) {
        return NULL;
    }
    int fd = open_new(r, place->dir, node, session, now);
    if (fd < 0 || !(r->file = fdopen(fd, "w"))) {
        log_error("cannot record to %s: %s", r->path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        free(r);
        return NULL;
    }
    r->values = place->values;
    r->partial = buffer_make(LIMIT_FRAME_BYTES + FRAME_HEADER);
    r->body = buffer_make(LIMIT_FRAME_BYTES);
    log_info("recording to %s", r->path);
    return r;
}

static void write_bytes(struct recording *r, const void *data, size_t len) {
    if (r->file && fwrite(data, 1, len, r->file) != len) {
        log_error("recording to %s ends: %s", r->path, strerror(errno));
        fclose(r->file);
        r->file = NULL;
    }
}

static void write_frame(struct recording *r, uint8_t op, uint32_t size, const void *body) {
    uint8_t header[FRAME_HEADER] = {op, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
                                    (uint8_t)(size >> 8), (uint8_t)size};
    write_bytes(r, header, sizeof header);
    if (body) {
        write_bytes(r, body, size);
    }
}

// A frame that is no trace message, for one that a replay cannot use, or must not have.
static void write_unusable(struct recording *r) {
    static const uint8_t body[] = {TERM_VERSION, TERM_NIL};
    write_frame(r, 0, sizeof body, body);
}

static void write_term(struct recording *r, struct slice body) {
    buffer_reset(&r->body);
    if (message_without_values(&r->reader, body, &r->body)) {
        write_frame(r, 0, (uint32_t)r->body.len, r->body.data);
    } else {
        write_unusable(r);
    }
}

static bool is_block(struct native_reader *r, struct slice body) {
    struct message m;
    struct native_loss loss;
    enum native_step step = native_begin(r, body) ? NATIVE_IS_MESSAGE : NATIVE_IS_BAD;
    while (step == NATIVE_IS_MESSAGE || step == NATIVE_IS_LOSS) {
        step = native_next(r, &m, &loss);
    }
    return step == NATIVE_IS_OVER;
}

// A block has none of the node's values, but in bytes that are none of its records, if it is
// damaged.
static void write_block(struct recording *r, struct slice body) {
    if (!r->native) {
        r->native = malloc(sizeof *r->native);
    }
    if (r->native && is_block(r->native, body)) {
        write_frame(r, FRAME_OP_BLOCK, (uint32_t)body.len, body.data);
    } else {
        write_unusable(r);
    }
}

static inline void write_one(void *context, const struct frame *frame) {
    struct recording *r = context;
    switch (frame->kind) {
    case FRAME_TERM:
        write_term(r, frame->body);
        break;
    case FRAME_BLOCK:
        write_block(r, frame->body);
        break;
    case FRAME_DROPPED:
        write_frame(r, FRAME_OP_DROPPED, frame->size, NULL);
        break;
    case FRAME_OVERSIZED:
        write_unusable(r);
        r->place.skipping = frame->size;
        break;
    case FRAME_EMPTY:
    case FRAME_END:
        write_frame(r, 0, 0, NULL);
        break;
    }
}

static int64_t write_frames(void *context, struct slice bytes) {
    struct recording *r = context;
    return frame_each(&r->place, bytes, write_one, r);
}

static bool keep_partial(void *context, struct slice bytes) {
    struct recording *r = context;
    return buffer_append(&r->partial, bytes.data, bytes.len);
}

void recording_add(struct recording *r, struct slice bytes) {
    struct frame_reader reader = {&r->partial, write_frames, keep_partial, r};
    if (r->values) {
        write_bytes(r, bytes.data, bytes.len);
    } else if (!r->over && r->file && !frame_feed(&reader, bytes)) {
        static const uint8_t none = UINT8_MAX; // begins no frame, for the replay to see the same
        write_bytes(r, &none, 1);
        r->over = true;
    }
}

void recording_end(struct recording *r) {
    if (!r) {
        return;
    }
    // Of a frame that was cut off only that it was there.
    size_t begun = r->partial.len < FRAME_HEADER ? r->partial.len : FRAME_HEADER;
    if (r->place.skipping > 0 || (begun > 0 && !r->over)) {
        static const uint8_t header[FRAME_HEADER] = {0, 0, 0, 0, 1};
        write_bytes(r, header, begun > 0 ? begun : FRAME_HEADER);
    }
    if (r->file && fclose(r->file) != 0) {
        log_error("recording to %s: %s", r->path, strerror(errno));
    }
    buffer_free(&r->partial);
    buffer_free(&r->body);
    free(r->native);
    free(r);
}
