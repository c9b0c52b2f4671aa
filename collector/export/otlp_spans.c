// SPDX-License-Identifier: Apache-2.0
#include "export/otlp_spans.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/time_math.h"
#include "export/otlp_attributes.h"

enum { DIGEST_BYTES = 32, KEY_BYTES = 400, NAME_BYTES = 300 };

// -- ids ------------------------------------------------------------------------------------------

static void digest_of(const char *key, uint8_t out[DIGEST_BYTES]) {
    if (EVP_Digest(key, strlen(key), out, NULL, EVP_sha256(), NULL) != 1) {
        memset(out, 1, DIGEST_BYTES); // without memory alone
    }
}

// The id of the span that a number of the request stands for.
static void span_id(const struct otlp_trace *t, int64_t span, uint8_t out[SPAN_ID_BYTES]) {
    uint8_t digest[DIGEST_BYTES];
    char key[KEY_BYTES], root[2 * SPAN_ID_BYTES + 1];
    hex_text(t->root_id, SPAN_ID_BYTES, root);
    snprintf(key, sizeof key, "kprof span %s %" PRId64, root, span);
    digest_of(key, digest);
    memcpy(out, digest, SPAN_ID_BYTES);
}

// Sets the trace's ids. Parent is the span that the request's own stands below: of a part, that of
// the request that it is a part of; else the one that has asked for it. Whether there is one.
static bool make_ids(struct otlp_trace *t, int64_t database_id, const struct otlp_request *r,
                     uint8_t parent[SPAN_ID_BYTES]) {
    uint8_t digest[DIGEST_BYTES];
    char key[KEY_BYTES], name[NAME_BYTES];
    bool part = r->origin.len > 0;
    if (r->label.known) {
        names_clean(part ? r->origin : r->node, name, sizeof name);
        snprintf(key, sizeof key, "kprof request %s %" PRId64, name, r->label.value);
    } else {
        snprintf(key, sizeof key, "kprof row %" PRId64 " %" PRId64, database_id, r->id);
    }
    digest_of(key, digest);
    memcpy(t->trace_id, digest, TRACE_ID_BYTES);
    memcpy(t->root_id, digest + TRACE_ID_BYTES, SPAN_ID_BYTES);
    bool asked = trace_parent_known(&r->parent);
    if (asked) {
        memcpy(t->trace_id, r->parent.trace_id, TRACE_ID_BYTES);
        memcpy(parent, r->parent.span_id, SPAN_ID_BYTES);
    }
    if (!part || !r->label.known) {
        return asked && !part;
    }
    memcpy(parent, t->root_id, SPAN_ID_BYTES);
    snprintf(key, sizeof key, "kprof part %" PRId64 " %" PRId64, database_id, r->id);
    digest_of(key, digest);
    memcpy(t->root_id, digest, SPAN_ID_BYTES);
    return true;
}

// -- spans ----------------------------------------------------------------------------------------

void otlp_trace_init(struct otlp_trace *t) {
    *t = (struct otlp_trace){.scope = buffer_make(LIMIT_OTLP_ITEM_BYTES)};
}

void otlp_trace_free(struct otlp_trace *t) {
    buffer_free(&t->scope);
}

static ProtobufCBinaryData bytes_of(uint8_t *data, size_t len) {
    return (ProtobufCBinaryData){len, data};
}

// Appends a piece of the ScopeSpans: pieces one behind the other are one message.
static void put(struct otlp_trace *t, const Otlp__ScopeSpans *piece) {
    size_t len = otlp__scope_spans__get_packed_size(piece);
    uint8_t *to = buffer_reserve(&t->scope, len);
    if (to) {
        buffer_grow(&t->scope, otlp__scope_spans__pack(piece, to));
    }
}

static void put_span(struct otlp_trace *t, Otlp__Span *span, struct attributes *attributes,
                     bool error) {
    Otlp__ScopeSpans piece = OTLP__SCOPE_SPANS__INIT;
    Otlp__Status status = OTLP__STATUS__INIT;
    status.code = OTLP__STATUS_CODE__STATUS_CODE_ERROR;
    span->trace_id = bytes_of(t->trace_id, TRACE_ID_BYTES);
    span->attributes = attributes->list;
    span->n_attributes = attributes->count;
    span->status = error ? &status : NULL;
    piece.spans = &span;
    piece.n_spans = 1;
    put(t, &piece);
    t->spans++;
}

static void put_scope(struct otlp_trace *t) {
    Otlp__ScopeSpans piece = OTLP__SCOPE_SPANS__INIT;
    Otlp__Scope scope;
    attributes_scope(&scope);
    piece.scope = &scope;
    put(t, &piece);
}

void otlp_trace_begin(struct otlp_trace *t, int64_t database_id, const struct otlp_request *r) {
    Otlp__Span span = OTLP__SPAN__INIT;
    struct attributes a = {.count = 0};
    uint8_t parent[SPAN_ID_BYTES];
    char name[NAME_BYTES];
    bool asked = trace_parent_known(&r->parent);
    t->flags = asked ? OTLP__SPAN_FLAGS__SPAN_FLAGS_HAS_IS_REMOTE | r->parent.flags : 0;
    span.flags = asked ? t->flags | OTLP__SPAN_FLAGS__SPAN_FLAGS_IS_REMOTE : 0;
    span.kind = asked && r->origin.len == 0 ? OTLP__SPAN_KIND__SPAN_KIND_SERVER
                                            : OTLP__SPAN_KIND__SPAN_KIND_INTERNAL;
    buffer_reset(&t->scope);
    t->spans = 0;
    t->begin_ns = r->begin_ns;
    names_clean(r->node, t->node, sizeof t->node);
    if (make_ids(t, database_id, r, parent)) {
        span.parent_span_id = bytes_of(parent, SPAN_ID_BYTES);
    }
    names_clean(r->identity, name, sizeof name);
    span.span_id = bytes_of(t->root_id, SPAN_ID_BYTES);
    span.name = name;
    span.start_time_unix_nano = attributes_time(r->begin_ns);
    span.end_time_unix_nano = attributes_time(time_add(r->begin_ns, r->duration_ns));
    attribute_text(&a, "kprof.identity", r->identity);
    attribute_int(&a, "kprof.request_id", r->id);
    attribute_text(&a, "kprof.reason", slice_text(r->reason));
    attribute_text(&a, "kprof.outcome", slice_text(r->error ? "error" : "ok"));
    attribute_bool(&a, "kprof.complete", !r->cut);
    attribute_int(&a, "kprof.spans", r->spans);
    attribute_int(&a, "kprof.kept_spans", r->kept_spans);
    if (r->uncovered_ns.known) {
        attribute_us(&a, "kprof.uncovered_us", r->uncovered_ns.value);
    }
    if (r->parallel_ns.known) {
        attribute_us(&a, "kprof.parallel_us", r->parallel_ns.value);
    }
    if (r->origin.len > 0) {
        attribute_text(&a, "kprof.origin", r->origin);
    }
    put_scope(t);
    put_span(t, &span, &a, r->error);
}

// When it began to wait, and for how long.
static void wait_of(const struct otlp_span *s, int64_t start_ns, Otlp__Event *event,
                    struct attributes *a) {
    *event = (Otlp__Event)OTLP__EVENT__INIT;
    event->name = (char *)"waiting";
    event->time_unix_nano = attributes_time(time_sub(start_ns, s->wait_ns));
    attribute_us(a, "kprof.wait_us", s->wait_ns);
    if (s->waiting_ns.known) {
        attribute_us(a, "kprof.waiting_us", s->waiting_ns.value);
    }
    attribute_bool(a, "kprof.measured", s->measured);
    if (s->run_queue_ns.known) {
        attribute_us(a, "kprof.mailbox_us", time_sub(s->wait_ns, s->run_queue_ns.value));
        attribute_us(a, "kprof.run_queue_us", s->run_queue_ns.value);
    }
    event->attributes = a->list;
    event->n_attributes = a->count;
}

void otlp_trace_span(struct otlp_trace *t, const struct otlp_span *s) {
    static const char *const outcomes[] = {"ok", "error", "open", "unknown"};
    Otlp__Span span = OTLP__SPAN__INIT;
    Otlp__Event event, *events = &event;
    struct attributes a = {.count = 0}, of_wait = {.count = 0};
    uint8_t id[SPAN_ID_BYTES], parent[SPAN_ID_BYTES];
    char name[NAME_BYTES];
    int64_t start_ns = time_add(t->begin_ns, s->start_ns);
    span_id(t, s->span, id);
    if (s->parent.known && s->parent.value >= 0 && s->parent.value < s->span) {
        span_id(t, s->parent.value, parent);
    } else {
        memcpy(parent, t->root_id, sizeof parent);
    }
    names_clean(s->name, name, sizeof name);
    span.span_id = bytes_of(id, SPAN_ID_BYTES);
    span.parent_span_id = bytes_of(parent, SPAN_ID_BYTES);
    span.flags = t->flags;
    span.kind = OTLP__SPAN_KIND__SPAN_KIND_INTERNAL;
    span.name = name;
    span.start_time_unix_nano = attributes_time(start_ns);
    span.end_time_unix_nano = attributes_time(time_add(start_ns, s->duration_ns));
    attribute_text(&a, "kprof.tier", s->name);
    attribute_text(&a, "kprof.pid", s->pid);
    attribute_us(&a, "kprof.self_us", s->self_ns);
    attribute_text(&a, "kprof.outcome", slice_text(outcomes[s->outcome]));
    attribute_bool(&a, "kprof.async", s->async);
    if (s->wait_ns > 0) {
        wait_of(s, start_ns, &event, &of_wait);
        span.events = &events;
        span.n_events = 1;
    }
    put_span(t, &span, &a, s->outcome == 1);
}

bool otlp_trace_end(struct otlp_trace *t, struct buffer *out) {
    Otlp__TraceRequest request = OTLP__TRACE_REQUEST__INIT;
    Otlp__ResourceSpans of = OTLP__RESOURCE_SPANS__INIT, *list = &of;
    Otlp__Resource resource = OTLP__RESOURCE__INIT;
    struct attributes a = {.count = 0};
    attributes_of_node(&a, slice_text(t->node));
    resource.attributes = a.list;
    resource.n_attributes = a.count;
    of.resource = &resource;
    of.packed_scope_spans = bytes_of(t->scope.data, t->scope.len);
    request.resource_spans = &list;
    request.n_resource_spans = 1;
    uint8_t *to = t->scope.failed
                      ? NULL
                      : buffer_reserve(out, otlp__trace_request__get_packed_size(&request));
    if (to) {
        buffer_grow(out, otlp__trace_request__pack(&request, to));
    }
    return to;
}
