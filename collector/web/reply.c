// SPDX-License-Identifier: Apache-2.0
#include "web/reply.h"

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "codec/json.h"

const char reply_json_type[] = "application/json";
const char reply_html_type[] = "text/html; charset=utf-8";

enum { GZIP_LEAST = 1000, GZIP_LEVEL = 4, GZIP_WINDOW = 15 + 16, GZIP_MEMORY = 8 };

static void add(struct evhttp_request *req, const char *key, const char *value) {
    evhttp_add_header(evhttp_request_get_output_headers(req), key, value);
}

void reply_headers(struct evhttp_request *req) {
    add(req, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'");
    add(req, "X-Content-Type-Options", "nosniff");
    add(req, "Referrer-Policy", "no-referrer");
    add(req, "Cross-Origin-Resource-Policy", "same-origin");
    add(req, "Vary", "Accept-Encoding, Cookie");
}

static const char *asked(struct evhttp_request *req, const char *header) {
    return evhttp_find_header(evhttp_request_get_input_headers(req), header);
}

// Behind gzip, or as it is where that fails.
static bool add_gzipped(struct evbuffer *out, struct slice body) {
    z_stream z = {0};
    if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        return false;
    }
    size_t room = deflateBound(&z, body.len);
    uint8_t *data = malloc(room);
    z.next_in = (uint8_t *)body.data;
    z.avail_in = (uInt)body.len;
    z.next_out = data;
    z.avail_out = (uInt)room;
    bool ok =
        data && deflate(&z, Z_FINISH) == Z_STREAM_END && evbuffer_add(out, data, z.total_out) == 0;
    deflateEnd(&z);
    free(data);
    return ok;
}

// Fills the body. True where it stands behind gzip.
static bool fill(struct evbuffer *out, const struct reply *reply, bool gzip) {
    if (gzip && reply->gzipped.len > 0) {
        return evbuffer_add_reference(out, reply->gzipped.data, reply->gzipped.len, NULL, NULL) ==
               0;
    }
    if (gzip && reply->body.len >= GZIP_LEAST && add_gzipped(out, reply->body)) {
        return true;
    }
    evbuffer_add(out, reply->body.data, reply->body.len);
    return false;
}

void reply_send(struct evhttp_request *req, const struct reply *reply) {
    struct evbuffer *out = evhttp_request_get_output_buffer(req);
    const char *takes = asked(req, "Accept-Encoding");
    const char *has = asked(req, "If-None-Match");
    reply_headers(req);
    add(req, "Cache-Control", reply->etag ? "no-cache" : "no-store");
    if (reply->etag) {
        add(req, "ETag", reply->etag);
    }
    if (reply->etag && has && strstr(has, reply->etag)) {
        evhttp_send_reply(req, 304, NULL, NULL);
        return;
    }
    add(req, "Content-Type", reply->type);
    if (fill(out, reply, takes && strstr(takes, "gzip"))) {
        add(req, "Content-Encoding", "gzip");
    }
    evhttp_send_reply(req, reply->status, NULL, NULL);
}

void reply_error(struct evhttp_request *req, int status, const char *why) {
    struct buffer body = buffer_make(4096);
    struct json j = json_make(&body);
    json_open(&j, '{');
    json_key_text(&j, "error", why);
    json_close(&j, '}');
    buffer_text(&body, "\n");
    reply_send(req, &(struct reply){.status = status,
                                    .type = reply_json_type,
                                    .body = slice_of(body.data, body.len)});
    buffer_free(&body);
}
