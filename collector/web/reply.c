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

bool reply_takes_gzip(struct evhttp_request *req) {
    const char *takes = asked(req, "Accept-Encoding");
    return takes && strstr(takes, "gzip");
}

bool reply_gzip(struct buffer *body) {
    z_stream z = {0};
    if (body->len < GZIP_LEAST || deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                                               Z_DEFAULT_STRATEGY) != Z_OK) {
        return false;
    }
    struct buffer packed = buffer_make(deflateBound(&z, body->len));
    z.next_in = body->data;
    z.avail_in = (uInt)body->len;
    z.next_out = buffer_reserve(&packed, packed.cap);
    z.avail_out = (uInt)packed.cap;
    bool ok = z.next_out && deflate(&z, Z_FINISH) == Z_STREAM_END;
    deflateEnd(&z);
    if (ok) {
        buffer_grow(&packed, z.total_out);
        buffer_free(body);
        *body = packed;
    } else {
        buffer_free(&packed);
    }
    return ok;
}

void reply_send(struct evhttp_request *req, const struct reply *reply) {
    struct evbuffer *out = evhttp_request_get_output_buffer(req);
    reply_headers(req);
    add(req, "Cache-Control", "no-store");
    add(req, "Content-Type", reply->type);
    evbuffer_add(out, reply->body.data, reply->body.len);
    evhttp_send_reply(req, reply->status, NULL, NULL);
}

// The part of an outbox that an answer takes until it is sent.
struct sent {
    struct outbox *outbox;
    struct buffer body;
};

static void on_sent(const void *data, size_t len, void *context) {
    (void)data;
    (void)len;
    struct sent *sent = context;
    struct outbox *outbox = sent->outbox;
    outbox->bytes -= sent->body.room;
    buffer_free(&sent->body);
    free(sent);
    if (outbox->closed && outbox->bytes == 0) {
        free(outbox);
    }
}

struct outbox *outbox_new(size_t most) {
    struct outbox *outbox = calloc(1, sizeof *outbox);
    if (outbox) {
        outbox->most = most;
    }
    return outbox;
}

void outbox_close(struct outbox *outbox) {
    if (outbox && outbox->bytes > 0) {
        outbox->closed = true;
    } else {
        free(outbox);
    }
}

void reply_answer(struct evhttp_request *req, const char *type, struct buffer *body, bool gzipped,
                  struct outbox *outbox) {
    struct evbuffer *out = evhttp_request_get_output_buffer(req);
    struct sent *sent = body->room <= outbox->most - outbox->bytes ? malloc(sizeof *sent) : NULL;
    if (sent) {
        *sent = (struct sent){outbox, *body};
    }
    if (!sent || evbuffer_add_reference(out, body->data, body->len, on_sent, sent) != 0) {
        free(sent);
        reply_error(req, 503, "too many answers are on their way; try again");
        return;
    }
    outbox->bytes += body->room;
    *body = buffer_make(0);
    reply_headers(req);
    add(req, "Cache-Control", "no-store");
    add(req, "Content-Type", type);
    if (gzipped) {
        add(req, "Content-Encoding", "gzip");
    }
    evhttp_send_reply(req, 200, NULL, NULL);
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
    bool gzip = file->gzipped && reply_takes_gzip(req);
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
