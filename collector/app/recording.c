#include "app/recording.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/text_time.h"

struct recording {
    FILE *file; // NULL after an error
    char path[4096];
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

struct recording *recording_start(const char *dir, const char *node, int64_t session, int64_t now) {
    struct recording *r = calloc(1, sizeof *r);
    if (!r) {
        return NULL;
    }
    char name[128], when[TEXT_TIME_BYTES];
    file_name(node, name, sizeof name);
    text_time_format(now, false, when);
    int n = snprintf(r->path, sizeof r->path, "%s/%s-%s-%" PRId64 ".cap", dir, name, when, session);
    if (n < 0 || (size_t)n >= sizeof r->path || !(r->file = fopen(r->path, "wxe"))) {
        log_error("cannot record to %s: %s", r->path, strerror(errno));
        free(r);
        return NULL;
    }
    log_info("recording to %s", r->path);
    return r;
}

void recording_add(struct recording *r, struct slice bytes) {
    if (r->file && fwrite(bytes.data, 1, bytes.len, r->file) != bytes.len) {
        log_error("recording to %s ends: %s", r->path, strerror(errno));
        fclose(r->file);
        r->file = NULL;
    }
}

void recording_end(struct recording *r) {
    if (r && r->file && fclose(r->file) != 0) {
        log_error("recording to %s: %s", r->path, strerror(errno));
    }
    free(r);
}
