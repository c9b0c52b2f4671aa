// SPDX-License-Identifier: Apache-2.0
#include "web/reply.h"

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "codec/json.h"

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

static bool takes_gzip(struct evhttp_request *req) {
    const char *takes = asked(req, "Accept-Encoding");
    return takes && strstr(takes, "gzip");
}

void reply_send(struct evhttp_request *req, const struct reply *reply) {
    struct evbuffer *out = evhttp_request_get_output_buffer(req);
    reply_headers(req);
    add(req, "Cache-Control", "no-store");
    add(req, "Content-Type", reply->type);
    if (reply->body.len >= GZIP_LEAST && takes_gzip(req) && add_gzipped(out, reply->body)) {
        add(req, "Content-Encoding", "gzip");
    } else {
        evbuffer_add(out, reply->body.data, reply->body.len);
    }
    evhttp_send_reply(req, reply->status, NULL, NULL);
}

void reply_file(struct evhttp_request *req, const char *type, const struct embedded *file) {
    struct evbuffer *out = evhttp_request_get_output_buffer(req);
    const char *has = asked(req, "If-None-Match");
    char etag[80];
    snprintf(etag, sizeof etag, "\"%s\"", file->sha256);
    reply_headers(req);
    add(req, "Cache-Control", "no-cache");
    add(req, "ETag", etag);
    if (has && strstr(has, etag)) {
        evhttp_send_reply(req, 304, NULL, NULL);
        return;
    }
    add(req, "Content-Type", type);
    bool gzip = file->gzipped && takes_gzip(req);
    if (gzip) {
        add(req, "Content-Encoding", "gzip");
    }
    evbuffer_add_reference(out, gzip ? file->gzipped : file->bytes,
                           gzip ? file->gzipped_len : file->len, NULL, NULL);
    evhttp_send_reply(req, 200, NULL, NULL);
}

void reply_error(struct evhttp_request *req, int status, const char *why) {
    struct buffer body = buffer_make(4096);
    struct json j = json_make(&body);
    json_open(&j, '{');
    json_key_text(&j, "error", why);
    json_close(&j, '}');
    buffer_text(&body, "\n");
    reply_send(req, &(struct reply){.status = status,
                                    .type = REPLY_JSON,
                                    .body = slice_of(body.data, body.len)});
    buffer_free(&body);
}

// evhttp takes a request from its connection when the other side closes in the middle of it, and
// only then (evhttp_connection_incoming_fail in libevent's http.c).
void reply_abandon(struct evhttp_request *req) {
    if (!evhttp_request_get_connection(req)) {
        evhttp_request_free(req);
    }
}
