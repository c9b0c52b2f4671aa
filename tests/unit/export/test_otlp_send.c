// SPDX-License-Identifier: Apache-2.0
// OTLP beside a writer: what a receiver is sent of requests and statistics, what is told of one
// that is away, well and wrong, what is set aside, and how far it was sent after all that.
#include "engine_fixture.h"
#include "store_fixture.h"

#include <math.h>
#include <time.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "export/otlp.h"
#include "export/otlp_batch.h"
#include "export/otlp_points.h"
#include "otlp.pb-c.h"

static const int64_t SECOND = 1000000000;
enum { PATIENCE_S = 60, BODY_BYTES = 1 << 22, SPANS = 1200, POINTS = 64, TEXT = 64 };

static struct engine server;
static struct store *store;
static struct writer *writer;
static struct otlp *otlp;
static char url[80];

// -- the receiver ---------------------------------------------------------------------------------

static int traces_status, metrics_status; // what it answers, but where it refuses
static char refuses[TEXT];                // what has this in it, 400
static char wants[TEXT];                  // what has no such header, 401
static char partial[TEXT];                // the body of its success
static size_t partial_len;
static bool slow;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // protects these, and what follows

struct seen_span {
    char trace[33], id[17], parent[17], name[TEXT], instance[TEXT], tier[TEXT], pid[TEXT],
        outcome[TEXT];
    uint64_t start, end;
    double self_us;
    int status, events, kind;
    uint32_t flags;
    uint64_t event_at;
    double wait_us;
};
static struct seen_span spans[SPANS];
static int span_count;
struct seen_point {
    char metric[TEXT], instance[TEXT], service[TEXT], identity[TEXT];
    uint64_t start, end, count, zero;
    double sum, min, max;
    int64_t errors;
    int scale, offset, buckets;
    uint64_t in_buckets;
};
static struct seen_point points[POINTS];
static int point_count;
static atomic_int asked;

static void hex(const ProtobufCBinaryData *bytes, char *out) {
    out[0] = 0;
    for (size_t i = 0; i < bytes->len; i++) {
        sprintf(out + 2 * i, "%02x", bytes->data[i]);
    }
}

static const Otlp__Value *value_of(Otlp__Attribute **all, size_t count, const char *key) {
    static const Otlp__Value none = OTLP__VALUE__INIT;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i]->key, key) == 0) {
            return all[i]->value;
        }
    }
    return &none;
}

static void text_of(Otlp__Attribute **all, size_t count, const char *key, char out[TEXT]) {
    const Otlp__Value *value = value_of(all, count, key);
    snprintf(out, TEXT, "%s",
             value->value_case == OTLP__VALUE__VALUE_STRING_VALUE ? value->string_value : "-");
}

static void see_span(const Otlp__Span *s, const Otlp__Resource *of) {
    struct seen_span *to = &spans[span_count++];
    assert_true(span_count < SPANS);
    *to = (struct seen_span){.start = s->start_time_unix_nano, .end = s->end_time_unix_nano};
    assert_int_equal(s->trace_id.len, 16);
    assert_int_equal(s->span_id.len, 8);
    hex(&s->trace_id, to->trace);
    hex(&s->span_id, to->id);
    hex(&s->parent_span_id, to->parent);
    snprintf(to->name, TEXT, "%s", s->name);
    text_of(of->attributes, of->n_attributes, "service.instance.id", to->instance);
    text_of(s->attributes, s->n_attributes, "kprof.tier", to->tier);
    text_of(s->attributes, s->n_attributes, "kprof.pid", to->pid);
    text_of(s->attributes, s->n_attributes, "kprof.outcome", to->outcome);
    to->self_us = value_of(s->attributes, s->n_attributes, "kprof.self_us")->double_value;
    to->status = s->status ? (int)s->status->code : 0;
    to->events = (int)s->n_events;
    to->kind = (int)s->kind;
    to->flags = s->flags;
    if (s->n_events > 0) {
        const Otlp__Event *e = s->events[0];
        assert_string_equal(e->name, "waiting");
        to->event_at = e->time_unix_nano;
        to->wait_us = value_of(e->attributes, e->n_attributes, "kprof.wait_us")->double_value;
    }
}

static void see_traces(const uint8_t *body, size_t len) {
    Otlp__TraceRequest *request = otlp__trace_request__unpack(NULL, len, body);
    assert_non_null(request);
    for (size_t i = 0; i < request->n_resource_spans; i++) {
        const Otlp__ResourceSpans *of = request->resource_spans[i];
        Otlp__ScopeSpans *scope = otlp__scope_spans__unpack(NULL, of->packed_scope_spans.len,
                                                            of->packed_scope_spans.data);
        assert_non_null(scope);
        assert_string_equal(scope->scope->name, "kprof");
        for (size_t k = 0; k < scope->n_spans; k++) {
            see_span(scope->spans[k], of->resource);
        }
        otlp__scope_spans__free_unpacked(scope, NULL);
    }
    otlp__trace_request__free_unpacked(request, NULL);
}

static void see_metric(const Otlp__Metric *m, const Otlp__Resource *of) {
    struct seen_point *to = &points[point_count++];
    assert_true(point_count < POINTS);
    *to = (struct seen_point){.scale = -1};
    snprintf(to->metric, TEXT, "%s", m->name);
    text_of(of->attributes, of->n_attributes, "service.instance.id", to->instance);
    text_of(of->attributes, of->n_attributes, "service.name", to->service);
    if (m->data_case == OTLP__METRIC__DATA_SUM) {
        assert_true(m->sum->is_monotonic);
        assert_int_equal(m->sum->aggregation_temporality, OTLP__TEMPORALITY__TEMPORALITY_DELTA);
        const Otlp__Number *p = m->sum->data_points[0];
        text_of(p->attributes, p->n_attributes, "kprof.identity", to->identity);
        to->errors = p->as_int;
        return;
    }
    assert_int_equal(m->data_case, OTLP__METRIC__DATA_EXPONENTIAL_HISTOGRAM);
    assert_int_equal(m->exponential_histogram->aggregation_temporality,
                     OTLP__TEMPORALITY__TEMPORALITY_DELTA);
    assert_string_equal(m->unit, "s");
    const Otlp__HistogramPoint *p = m->exponential_histogram->data_points[0];
    text_of(p->attributes, p->n_attributes, "kprof.identity", to->identity);
    to->start = p->start_time_unix_nano;
    to->end = p->time_unix_nano;
    to->count = p->count;
    to->zero = p->zero_count;
    to->sum = p->sum;
    to->min = p->min;
    to->max = p->max;
    to->scale = p->scale;
    if (p->positive) {
        to->offset = p->positive->offset;
        to->buckets = (int)p->positive->n_bucket_counts;
        for (size_t i = 0; i < p->positive->n_bucket_counts; i++) {
            to->in_buckets += p->positive->bucket_counts[i];
        }
    }
}

static void see_metrics(const uint8_t *body, size_t len) {
    Otlp__MetricsRequest *request = otlp__metrics_request__unpack(NULL, len, body);
    assert_non_null(request);
    for (size_t i = 0; i < request->n_resource_metrics; i++) {
        const Otlp__ResourceMetrics *of = request->resource_metrics[i];
        for (size_t k = 0; k < of->n_scope_metrics; k++) {
            for (size_t m = 0; m < of->scope_metrics[k]->n_metrics; m++) {
                see_metric(of->scope_metrics[k]->metrics[m], of->resource);
            }
        }
    }
    otlp__metrics_request__free_unpacked(request, NULL);
}

static size_t unpack(const struct engine_request *r, uint8_t *out) {
    z_stream zip = {.next_in = (Bytef *)r->body, .avail_in = (uInt)r->len, .next_out = out};
    zip.avail_out = BODY_BYTES;
    assert_int_equal(inflateInit2(&zip, 16 + MAX_WBITS), Z_OK);
    assert_int_equal(inflate(&zip, Z_FINISH), Z_STREAM_END);
    inflateEnd(&zip);
    return zip.total_out;
}

static void say(int fd, int status, const char *body, size_t len) {
    char head[200];
    snprintf(head, sizeof head,
             "HTTP/1.1 %d Words\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status, len);
    engine_write(fd, head, strlen(head));
    engine_write(fd, body, len);
}

static void be_receiver(void *arg, int fd, const struct engine_request *r) {
    static uint8_t body[BODY_BYTES];
    char byte;
    (void)arg;
    size_t len = unpack(r, body);
    bool traces = strstr(r->head, "POST /v1/traces ");
    assert_true(traces || strstr(r->head, "POST /v1/metrics "));
    assert_non_null(strstr(r->head, "Content-Type: application/x-protobuf\r\n"));
    asked += len > 0;
    pthread_mutex_lock(&mutex);
    bool wait = slow && len > 0;
    int status = traces ? traces_status : metrics_status;
    if (refuses[0] && memmem(body, len, refuses, strlen(refuses))) {
        status = 400;
    }
    if (wants[0] && !strstr(r->head, wants)) {
        status = 401;
    }
    if (status == 200 && !wait) {
        (traces ? see_traces : see_metrics)(body, len);
    }
    pthread_mutex_unlock(&mutex);
    if (wait && read(fd, &byte, 1) <= 0) { // until who asks has enough
        return;
    }
    if (status == 200) {
        say(fd, 200, len > 0 ? partial : "", len > 0 ? partial_len : 0);
    } else {
        say(fd, status, "no such luck", 12);
    }
}

static void answer(int traces, int metrics) {
    pthread_mutex_lock(&mutex);
    traces_status = traces;
    metrics_status = metrics;
    pthread_mutex_unlock(&mutex);
}

static void forget(void) {
    pthread_mutex_lock(&mutex);
    span_count = point_count = 0;
    pthread_mutex_unlock(&mutex);
}

static int seen_spans(void) {
    pthread_mutex_lock(&mutex);
    int n = span_count;
    pthread_mutex_unlock(&mutex);
    return n;
}

static int seen_points(void) {
    pthread_mutex_lock(&mutex);
    int n = point_count;
    pthread_mutex_unlock(&mutex);
    return n;
}

// -- setting up -----------------------------------------------------------------------------------

static int setup(void **state) {
    static const bool both[OTLP_SIGNALS] = {true, true};
    const struct writer_options options = {.bucket_s = 10};
    fixture_setup(state);
    traces_status = metrics_status = 200;
    refuses[0] = wants[0] = 0;
    partial_len = 0;
    slow = false;
    asked = 0;
    forget();
    engine_start(&server, be_receiver, NULL);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", server.target.port);
    store = fixture_open();
    assert_true(store_otlp_follow(store, both, 10));
    free(fixture_ask(fixture_db, "UPDATE otlp_state SET bucket_start = 0"));
    writer = writer_start(store, &options);
    return 0;
}

static int teardown(void **state) {
    otlp_stop(otlp);
    otlp = NULL;
    writer_stop(writer);
    store_close(store);
    engine_stop(&server);
    return fixture_teardown(state);
}

static void start_with(bool traces, bool metrics) {
    char why[OTLP_WHY_BYTES];
    const struct otlp_options o = {
        .url = url, .signals = {traces, metrics}, .bucket_s = 10, .database = fixture_db};
    otlp = otlp_start(&o, writer, why);
    assert_non_null(otlp);
}

static void start(void) {
    start_with(true, true);
}

static int64_t long_ago(void) {
    return clock_wall() / SECOND / 60 * 60 - 600;
}

static void write_batch(struct stats *batch) {
    assert_true(writer_submit(writer, batch, &fixture_names));
    assert_true(writer_wait(writer));
    stats_free(batch);
}

static void keep(int64_t bucket, const char *identity, uint32_t count) {
    struct stats *batch = stats_new();
    struct kept_request r = fixture_request(bucket, identity, KEPT_OVER, 5000, count);
    fixture_keep(batch, &r);
    write_batch(batch);
}

static void count(int64_t bucket, const char *identity, const uint64_t *ns, int n) {
    struct stats *batch = stats_new();
    for (int i = 0; i < n; i++) {
        fixture_call(batch, bucket, identity, "_total", ns[i], false);
    }
    fixture_ledger(batch, bucket)->requests_complete = 1;
    write_batch(batch);
}

static struct otlp_signal_status status(enum otlp_signal signal) {
    struct otlp_status s;
    otlp_get_status(otlp, &s);
    return s.signals[signal];
}

#define AWAIT(condition)                                                                           \
    for (time_t until_ = time(NULL) + PATIENCE_S; !(condition); usleep(20000)) {                   \
        if (time(NULL) > until_) {                                                                 \
            fail_msg("not within a minute: " #condition);                                          \
        }                                                                                          \
    }

static void want(const char *header) {
    pthread_mutex_lock(&mutex);
    snprintf(wants, sizeof wants, "%s", header);
    pthread_mutex_unlock(&mutex);
}

// -- traces ---------------------------------------------------------------------------------------

static const struct seen_span *span_named(const char *name) {
    for (int i = 0; i < span_count; i++) {
        if (strcmp(spans[i].name, name) == 0) {
            return &spans[i];
        }
    }
    fail_msg("no span is called %s", name);
    return NULL;
}

static void a_request_as_a_trace(void **state) {
    (void)state;
    int64_t bucket = long_ago();
    struct stats *batch = stats_new();
    struct kept_request r = fixture_request(bucket, "create", KEPT_FAILED, 7000, 3);
    r.error = true;
    const struct kept_span of[3] = {{.start = 1,
                                     .duration = 4000,
                                     .self = 2500,
                                     .pid = 100,
                                     .parent = UINT32_MAX,
                                     .tier = directory_tier(&fixture_names, slice_text("http"))},
                                    {.start = 300,
                                     .duration = 300,
                                     .wait = 250,
                                     .pid = 101,
                                     .error = true,
                                     .tier = directory_tier(&fixture_names, slice_text("db"))},
                                    {.start = 400,
                                     .pid = 101,
                                     .parent = 1,
                                     .open = true,
                                     .tier = directory_tier(&fixture_names, slice_text("disk"))}};
    assert_true(stats_keep(batch, &r, of));
    start();
    write_batch(batch);
    AWAIT(status(OTLP_TRACES).sent == 4);
    assert_int_equal(seen_spans(), 4);
    uint64_t began = (uint64_t)bucket * (uint64_t)SECOND;
    const struct seen_span *root = span_named("create"), *http = span_named("http"),
                           *db = span_named("db"), *disk = span_named("disk");
    assert_string_equal(root->parent, "");
    assert_string_equal(http->parent, root->id);
    assert_string_equal(db->parent, http->id);
    assert_string_equal(disk->parent, db->id);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(spans[i].trace, root->trace);
        assert_string_equal(spans[i].instance, "shop@host");
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(spans[i].id, spans[k].id);
        }
    }
    assert_true(root->start == began && root->end == began + 7000);
    assert_int_equal(root->status, 2);
    assert_true(http->start == began + 1 && http->end == began + 4001);
    assert_string_equal(http->tier, "http");
    assert_true(http->self_us == 2.5);
    assert_int_equal(http->status, 0);
    assert_string_equal(http->outcome, "ok");
    assert_int_equal(http->events, 0);
    assert_true(db->start == began + 300 && db->end == began + 600);
    assert_string_equal(db->outcome, "error");
    assert_int_equal(db->status, 2);
    assert_true(db->events == 1 && db->event_at == began + 50 && db->wait_us == 0.25);
    assert_true(disk->start == disk->end);
    assert_string_equal(disk->outcome, "open");
    char *pid = fixture_ask(fixture_db, "SELECT pid FROM slow_spans WHERE name = 'http'");
    assert_string_equal(http->pid, pid);
    free(pid);
}

// The parts of a request on several nodes, also in databases that know nothing of one another.
static void parts_are_one_trace(void **state) {
    (void)state;
    start();
    struct stats *batch = stats_new();
    struct kept_request r = fixture_request(long_ago(), "create", KEPT_OVER, 7000, 0);
    r.label = 4711;
    fixture_keep(batch, &r);
    r = fixture_request(long_ago(), "_remote", KEPT_OVER, 600, 1);
    r.label = 4711;
    r.node = directory_node(&fixture_names, slice_text("far@host"));
    r.maker = directory_node(&fixture_names, slice_text("shop@host"));
    r.remote = true;
    fixture_keep(batch, &r);
    r = fixture_request(long_ago(), "other", KEPT_OVER, 600, 0);
    r.label = 4711; // of another node's making
    r.node = directory_node(&fixture_names, slice_text("far@host"));
    fixture_keep(batch, &r);
    r = fixture_request(long_ago(), "nameless", KEPT_OVER, 600, 0);
    fixture_keep(batch, &r);
    write_batch(batch);
    AWAIT(seen_spans() == 5);
    const struct seen_span *own = span_named("create"), *part = span_named("_remote"),
                           *other = span_named("other"), *nameless = span_named("nameless");
    assert_string_equal(part->trace, own->trace);
    assert_string_equal(part->parent, own->id);
    assert_string_equal(part->instance, "far@host");
    assert_string_equal(span_named("http")->parent, part->id);
    assert_string_not_equal(other->trace, own->trace);
    assert_string_not_equal(nameless->trace, own->trace);
    assert_string_equal(other->parent, "");
    // sha256sum of "kprof request shop@host 4711"
    assert_string_equal(own->trace, "f5e17d9b90cc4e3ba70193532b1b17d2");
    assert_string_equal(own->id, "69c3b78d0cec13dc");
}

// What a span outside has asked for is below that, in its trace, and so is a part elsewhere.
static void asked_for_from_outside(void **state) {
    (void)state;
    start();
    struct stats *batch = stats_new();
    struct kept_request r = fixture_request(long_ago(), "create", KEPT_OVER, 7000, 1);
    r.label = 4711;
    memset(r.parent.trace_id, 0xab, TRACE_ID_BYTES);
    memset(r.parent.span_id, 0xcd, SPAN_ID_BYTES);
    r.parent.flags = 1;
    fixture_keep(batch, &r);
    r = fixture_request(long_ago(), "_remote", KEPT_OVER, 600, 0);
    r.label = 4711;
    r.node = directory_node(&fixture_names, slice_text("far@host"));
    r.maker = directory_node(&fixture_names, slice_text("shop@host"));
    r.remote = true;
    fixture_keep(batch, &r);
    r = fixture_request(long_ago(), "alone", KEPT_OVER, 600, 0);
    r.label = 4712;
    fixture_keep(batch, &r);
    write_batch(batch);
    AWAIT(seen_spans() == 4);
    const struct seen_span *own = span_named("create"), *part = span_named("_remote"),
                           *call = span_named("http"), *alone = span_named("alone");
    assert_string_equal(own->trace, "abababababababababababababababab");
    assert_string_equal(own->parent, "cdcdcdcdcdcdcdcd");
    assert_string_equal(own->id, "69c3b78d0cec13dc"); // as without it
    assert_int_equal(own->flags, 0x301);              // sampled; its parent is elsewhere
    assert_int_equal(own->kind, OTLP__SPAN_KIND__SPAN_KIND_SERVER);
    assert_string_equal(call->trace, own->trace);
    assert_string_equal(call->parent, own->id);
    assert_int_equal(call->flags, 0x101); // its parent is here
    assert_int_equal(call->kind, OTLP__SPAN_KIND__SPAN_KIND_INTERNAL);
    assert_string_equal(part->trace, own->trace);
    assert_string_equal(part->parent, own->id);
    assert_int_equal(part->kind, OTLP__SPAN_KIND__SPAN_KIND_INTERNAL);
    assert_int_equal(part->flags, 0x301);
    assert_string_not_equal(alone->trace, own->trace);
    assert_string_equal(alone->parent, "");
    assert_int_equal(alone->flags, 0);
}

static void away_and_back(void **state) {
    (void)state;
    answer(503, 200);
    start();
    keep(long_ago(), "create", 2);
    AWAIT(strstr(status(OTLP_TRACES).why, "503: no such luck"));
    AWAIT(status(OTLP_TRACES).waiting == 1);
    assert_false(status(OTLP_TRACES).sending);
    assert_true(status(OTLP_TRACES).behind_s >= 600 - 75);
    AWAIT(status(OTLP_METRICS).sending); // the other signal goes on
    keep(long_ago(), "create", 0);
    answer(200, 200);
    AWAIT(status(OTLP_TRACES).sending);
    AWAIT(status(OTLP_TRACES).sent == 4);
    assert_string_equal(status(OTLP_TRACES).why, "");
    fixture_expect("SELECT request_id FROM otlp_state", "2");
    assert_int_equal(seen_spans(), 4);
    // what is sent again has the same ids
    static struct seen_span first[4];
    memcpy(first, spans, sizeof first);
    forget();
    free(fixture_ask(fixture_db, "UPDATE otlp_state SET request_id = 0"));
    AWAIT(seen_spans() == 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(spans[i].id, first[i].id);
        assert_string_equal(spans[i].trace, first[i].trace);
        assert_string_equal(spans[i].parent, first[i].parent);
    }
}

static void what_is_refused_stops_no_other(void **state) {
    (void)state;
    strcpy(refuses, "bad one");
    for (int i = 0; i < 7; i++) {
        keep(long_ago(), i == 0 || i == 4 ? "bad one" : "good", 1);
    }
    start();
    AWAIT(status(OTLP_TRACES).sent == 10);
    AWAIT(status(OTLP_TRACES).refused == 4);
    assert_true(status(OTLP_TRACES).sending);
    fixture_expect("SELECT group_concat(signal || first || '-' || last || ' ' || items || ' ' || "
                   "reason, '; ') FROM (SELECT * FROM otlp_refusals ORDER BY first)",
                   "traces1-1 2 it answers with HTTP status 400: no such luck; "
                   "traces5-5 2 it answers with HTTP status 400: no such luck");
    fixture_expect("SELECT request_id FROM otlp_state", "7");
}

// Where it takes none of them it is not about them.
static void what_is_all_refused_waits(void **state) {
    (void)state;
    strcpy(refuses, "bad");
    keep(long_ago(), "bad", 1);
    keep(long_ago(), "bad", 1);
    start();
    AWAIT(strstr(status(OTLP_TRACES).why, "400"));
    fixture_expect("SELECT request_id || ' ' || refused_spans FROM otlp_state", "0 0");
    keep(long_ago(), "good", 0); // now it can be known
    AWAIT(status(OTLP_TRACES).sent == 1);
    AWAIT(status(OTLP_TRACES).refused == 4);
}

static void what_it_takes_in_part(void **state) {
    (void)state;
    memcpy(partial, "\x0a\x0a\x08\x02\x12\x06no way", 12);
    partial_len = 12;
    keep(long_ago(), "create", 2);
    keep(long_ago(), "create", 2);
    start();
    AWAIT(status(OTLP_TRACES).refused == 2);
    assert_int_equal(status(OTLP_TRACES).sent, 4);
    fixture_expect("SELECT first || '-' || last || ' ' || items || ' ' || reason FROM "
                   "otlp_refusals",
                   "1-2 2 no way");
    // it cannot have refused more than it was given
    partial[3] = 100;
    keep(long_ago(), "create", 2);
    AWAIT(status(OTLP_TRACES).refused == 5);
    assert_int_equal(status(OTLP_TRACES).sent, 4);
}

// -- metrics --------------------------------------------------------------------------------------

static void statistics_as_metrics(void **state) {
    (void)state;
    static const uint64_t durations[] = {1, 1000, 1500, 2000000, 3000000000};
    int64_t minute = long_ago();
    count(minute, "create", durations, 5);
    struct stats *failed = stats_new();
    fixture_row(failed, minute, "shop@host", "create", "_total")->errors = 2;
    fixture_ledger(failed, minute)->messages = 1;
    write_batch(failed);
    start();
    AWAIT(status(OTLP_METRICS).sent == 2);
    assert_int_equal(seen_points(), 2);
    const struct seen_point *p = &points[0], *errors = &points[1];
    assert_string_equal(p->metric, "kprof.request.duration");
    assert_string_equal(p->instance, "shop@host");
    assert_string_equal(p->service, "shop");
    assert_string_equal(p->identity, "create");
    assert_true(p->start == (uint64_t)(minute * SECOND));
    assert_true(p->end == (uint64_t)((minute + 60) * SECOND));
    assert_int_equal(p->count, 5);
    assert_true(fabs(p->sum - 3.002002501) < 1e-12);
    assert_true(p->min == 1e-9 && p->max == 3.0);
    assert_int_equal(p->scale, 5);
    assert_int_equal(p->zero, 1);
    assert_int_equal(p->in_buckets, 4);
    // 1000 ns and 3 s, in seconds, are in the first and the last bucket, each of which ends 0.6 %
    // too early
    double first = exp2(p->offset / 32.0), behind = exp2((p->offset + p->buckets) / 32.0);
    assert_true(first < 1e-6 && exp2((p->offset + 1) / 32.0) * 1.0063 >= 1e-6);
    assert_true(behind * 1.0063 >= 3.0 && exp2((p->offset + p->buckets - 1) / 32.0) < 3.0);
    assert_string_equal(errors->metric, "kprof.request.errors");
    assert_int_equal(errors->errors, 2);
    assert_string_equal(errors->identity, "create");
}

static void one_that_takes_no_metrics(void **state) {
    (void)state;
    static const uint64_t one[] = {1000};
    answer(200, 404);
    start();
    count(long_ago(), "create", one, 1);
    keep(long_ago(), "create", 1);
    AWAIT(strstr(status(OTLP_METRICS).why, "404"));
    AWAIT(status(OTLP_TRACES).sent == 2);
    assert_true(status(OTLP_TRACES).sending);
    assert_int_equal(status(OTLP_METRICS).sent, 0);
    otlp_stop(otlp);
    forget();
    start_with(true, false);
    keep(long_ago(), "create", 0);
    AWAIT(status(OTLP_TRACES).sent == 1);
    assert_false(status(OTLP_METRICS).wanted);
    assert_string_equal(status(OTLP_METRICS).why, "");
}

// -- a batch alone --------------------------------------------------------------------------------

static struct otlp_batch batch;

static void read_batch(enum otlp_signal signal, struct http *http) {
    struct store *reader = fixture_reader();
    struct otlp_state of;
    const struct otlp_time time = {clock_wall() / SECOND, 10, false};
    otlp_batch_init(&batch, signal, http);
    assert_true(otlp_state(reader, &of));
    assert_true(otlp_batch_read(&batch, reader, &of, &time));
    store_close(reader);
}

// Rows of which there is no message are set aside, each where it stands.
static void rows_that_cannot_be_sent(void **state) {
    (void)state;
    static const uint64_t one[] = {1000};
    int64_t minute = long_ago();
    const struct http_options options = {.target = &server.target,
                                         .type = "application/x-protobuf"};
    count(minute, "a", one, 1);
    count(minute, "b", one, 1);
    count(minute, "c", one, 1);
    free(fixture_ask(fixture_db,
                     "UPDATE stat_rows SET histogram = x'02ffff' WHERE identity_id = (SELECT id "
                     "FROM identity_names WHERE name = 'a')"));
    free(fixture_ask(fixture_db, "UPDATE stat_rows SET calls = 7 WHERE identity_id = (SELECT id "
                                 "FROM identity_names WHERE name = 'c')"));
    struct http *http = http_new(&options);
    read_batch(OTLP_METRICS, http);
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.unsendable_count, 2);
    struct otlp_report report;
    assert_true(otlp_batch_send(&batch, &report));
    assert_int_equal(report.refused, 4);
    assert_int_equal(report.refusal_count, 2);
    assert_string_equal(report.refusals[0].reason, "its histogram is malformed");
    assert_string_equal(report.refusals[1].reason, "its counts do not add up");
    assert_int_equal(report.place.bucket_start, minute);
    assert_int_equal(batch.sent, 2);
    otlp_batch_free(&batch);
    http_free(http);
}

static int let_through; // so many are taken, then none

static void take_some(void *arg, int fd, const struct engine_request *r) {
    static uint8_t body[BODY_BYTES];
    (void)arg;
    size_t len = unpack(r, body);
    if (memmem(body, len, "bad", 3) && let_through > 0) {
        say(fd, 400, "no", 2);
    } else if (let_through-- > 0) {
        say(fd, 200, "", 0);
    } else {
        say(fd, 503, "", 0);
    }
}

// What is certain of a batch is noted, though the rest is not: a point that is sent twice counts
// twice.
static void a_batch_in_part(void **state) {
    (void)state;
    static const uint64_t one[] = {1000};
    int64_t minute = long_ago();
    static const char *const names[] = {"a", "bad", "c", "d"};
    const struct http_options options = {.target = &server.target,
                                         .type = "application/x-protobuf"};
    for (int i = 0; i < 4; i++) {
        count(minute, names[i], one, 1);
    }
    server.answer = take_some;
    struct http *http = http_new(&options);
    read_batch(OTLP_METRICS, http);
    assert_int_equal(batch.count, 4);
    let_through = 1; // of a, bad, c, d: a; bad is refused after it, then c and d wait
    struct otlp_report report;
    assert_false(otlp_batch_send(&batch, &report));
    assert_int_equal(report.refused, 0);
    assert_int_equal(report.database_id, batch.database_id);
    assert_int_equal(report.place.identity_id, batch.items[0].place.identity_id);
    assert_int_equal(batch.sent, 2);
    let_through = 0;
    assert_false(otlp_batch_send(&batch, &report));
    assert_int_equal(report.database_id, 0); // nothing is certain
    otlp_batch_free(&batch);
    http_free(http);
}

// As many as fit, then the next.
static void in_batches(void **state) {
    (void)state;
    enum { MANY = LIMIT_OTLP_BATCH_ITEMS + 10 };
    const struct http_options options = {.target = &server.target,
                                         .type = "application/x-protobuf"};
    for (int i = 0; i < MANY; i += 10) { // a bucket has room for ten
        struct stats *some = stats_new();
        for (int k = 0; k < 10; k++) {
            struct kept_request r =
                fixture_request(long_ago() - 10 * i, "create", KEPT_OVER, 5000, 0);
            fixture_keep(some, &r);
        }
        write_batch(some);
    }
    struct http *http = http_new(&options);
    read_batch(OTLP_TRACES, http);
    assert_int_equal(batch.count, LIMIT_OTLP_BATCH_ITEMS);
    assert_true(batch.full);
    otlp_batch_free(&batch);
    http_free(http);
    start();
    AWAIT(status(OTLP_TRACES).sent == MANY);
}

// -- numbers of fields ----------------------------------------------------------------------------

// As OpenTelemetry has published them (opentelemetry-proto 1), not as otlp.proto has them.

static uint64_t varint(struct cursor *c) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(c);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            break;
        }
    }
    return value;
}

// The first field that a path of numbers leads to, a 0 behind the last.
static bool find(struct slice in, const int *path, struct slice *out) {
    struct cursor c = cursor_of(in.data, in.len);
    while (cursor_left(&c) > 0 && !c.failed) {
        uint64_t key = varint(&c), kind = key & 7;
        const uint8_t *start = c.at;
        size_t len = kind == 1 ? 8 : 0;
        if (kind == 0) {
            varint(&c);
            len = (size_t)(c.at - start);
        } else {
            assert_true(kind == 1 || kind == 2);
            len = kind == 2 ? (size_t)varint(&c) : len;
            start = cursor_claim(&c, len);
        }
        struct slice value = slice_of(start, len);
        if ((int)(key >> 3) == path[0] && (path[1] == 0 || find(value, path + 1, out))) {
            *out = path[1] == 0 ? value : *out;
            return true;
        }
    }
    return false;
}

#define FIELD(...)                                                                                 \
    (assert_true(find(whole, (const int[]){__VA_ARGS__, 0}, &field_value)), field_value)
#define EXPECT_TEXT(text, ...) assert_true(slice_is(FIELD(__VA_ARGS__), text))
#define EXPECT_INT(n, ...) assert_int_equal(int_of(FIELD(__VA_ARGS__)), n)
#define EXPECT_DOUBLE(n, ...) assert_true(double_of(FIELD(__VA_ARGS__)) == (n))
static struct slice whole, field_value;

// Of 8 bytes, or a varint.
static uint64_t int_of(struct slice value) {
    uint64_t n = 0;
    struct cursor c = cursor_of(value.data, value.len);
    if (value.len < 8) {
        return varint(&c);
    }
    memcpy(&n, value.data, 8);
    return n;
}

static double double_of(struct slice value) {
    double n;
    assert_int_equal(value.len, 8);
    memcpy(&n, value.data, 8);
    return n;
}

static void traces_have_the_fields_of_otlp(void **state) {
    (void)state;
    struct otlp_trace t;
    struct buffer out = buffer_make(1 << 16);
    const struct otlp_request r = {.id = 77,
                                   .node = slice_text("shop@host"),
                                   .identity = slice_text("create"),
                                   .reason = "failed",
                                   .begin_ns = 1000000000000,
                                   .duration_ns = 5000,
                                   .error = true,
                                   .label = {true, 5}};
    const struct otlp_span span = {.pid = slice_text("<0.1.0>"),
                                   .name = slice_text("http"),
                                   .start_ns = 100,
                                   .duration_ns = 7,
                                   .wait_ns = 40,
                                   .async = true};
    otlp_trace_init(&t);
    otlp_trace_begin(&t, 1, &r);
    otlp_trace_span(&t, &span);
    assert_true(otlp_trace_end(&t, &out));
    otlp_trace_free(&t);
    whole = slice_of(out.data, out.len);
    // resource_spans 1: resource 1: attributes 1: key 1, value 2: string_value 1
    EXPECT_TEXT("service.name", 1, 1, 1, 1);
    EXPECT_TEXT("shop", 1, 1, 1, 2, 1);
    // scope_spans 2: scope 1: name 1, version 2; spans 2
    EXPECT_TEXT("kprof", 1, 2, 1, 1);
    EXPECT_TEXT(KPROF_VERSION, 1, 2, 1, 2);
    assert_int_equal(FIELD(1, 2, 2, 1).len, 16);  // trace_id
    assert_int_equal(FIELD(1, 2, 2, 2).len, 8);   // span_id
    assert_int_equal(FIELD(1, 2, 2, 4).len, 8);   // parent_span_id, of the second one
    EXPECT_TEXT("create", 1, 2, 2, 5);            // name
    EXPECT_INT(1, 1, 2, 2, 6);                    // kind: internal
    EXPECT_INT(1000000000000, 1, 2, 2, 7);        // start_time_unix_nano
    EXPECT_INT(1000000005000, 1, 2, 2, 8);        // end_time_unix_nano
    EXPECT_TEXT("kprof.identity", 1, 2, 2, 9, 1); // attributes
    EXPECT_TEXT("create", 1, 2, 2, 9, 2, 1);
    EXPECT_INT(77, 1, 2, 2, 9, 2, 3);          // int_value
    EXPECT_INT(1, 1, 2, 2, 9, 2, 2);           // bool_value, of kprof.complete
    EXPECT_DOUBLE(0.0, 1, 2, 2, 9, 2, 4);      // double_value, of kprof.self_us
    EXPECT_INT(2, 1, 2, 2, 15, 3);             // status: code: error
    EXPECT_INT(1000000000060, 1, 2, 2, 11, 1); // events: time_unix_nano
    EXPECT_TEXT("waiting", 1, 2, 2, 11, 2);
    EXPECT_TEXT("kprof.wait_us", 1, 2, 2, 11, 3, 1);
    EXPECT_DOUBLE(0.04, 1, 2, 2, 11, 3, 2, 4);
    buffer_free(&out);
}

static void metrics_have_the_fields_of_otlp(void **state) {
    (void)state;
    struct histogram h = {0};
    struct buffer stored = buffer_make(1 << 12), out = buffer_make(1 << 16);
    assert_true(histogram_add(&h, 1) && histogram_add(&h, 1000) && histogram_add(&h, 1000000));
    assert_true(histogram_write(&h, &stored));
    const struct otlp_point p = {.bucket_start = 600,
                                 .node = slice_text("shop@host"),
                                 .identity = slice_text("create"),
                                 .calls = 3,
                                 .errors = 2,
                                 .duration_ns = 1001001,
                                 .min_ns = {true, 1},
                                 .max_ns = {true, 1000000},
                                 .histogram = slice_of(stored.data, stored.len)};
    histogram_reset(&h);
    assert_null(otlp_point_write(&p, 60, &h, &out));
    whole = slice_of(out.data, out.len);
    // resource_metrics 1: resource 1; scope_metrics 2: scope 1, metrics 2: name 1, unit 3
    EXPECT_TEXT("service.name", 1, 1, 1, 1);
    EXPECT_TEXT("kprof", 1, 2, 1, 1);
    EXPECT_TEXT("kprof.request.duration", 1, 2, 2, 1);
    EXPECT_TEXT("s", 1, 2, 2, 3);
    // exponential_histogram 10: data_points 1, aggregation_temporality 2: delta
    EXPECT_INT(1, 1, 2, 2, 10, 2);
    EXPECT_TEXT("kprof.identity", 1, 2, 2, 10, 1, 1, 1);
    EXPECT_INT(600000000000, 1, 2, 2, 10, 1, 2);  // start_time_unix_nano
    EXPECT_INT(660000000000, 1, 2, 2, 10, 1, 3);  // time_unix_nano
    EXPECT_INT(3, 1, 2, 2, 10, 1, 4);             // count
    EXPECT_DOUBLE(1001001e-9, 1, 2, 2, 10, 1, 5); // sum
    EXPECT_INT(10, 1, 2, 2, 10, 1, 6);            // scale, zigzag
    EXPECT_INT(1, 1, 2, 2, 10, 1, 7);             // zero_count
    // positive 8: offset 1, zigzag: 1000 ns is in the bucket that ends at 2^(319 / 32) ns
    EXPECT_INT(2 * (957 - 318) - 1, 1, 2, 2, 10, 1, 8, 1);
    struct slice counts = FIELD(1, 2, 2, 10, 1, 8, 2); // bucket_counts, packed
    assert_int_equal(counts.data[0], 1);
    assert_int_equal(counts.data[counts.len - 1], 1);
    assert_int_equal(counts.len, 637 - 318 + 1); // 10^6 ns is in the one that ends at 2^(638 / 32)
    EXPECT_DOUBLE(1e-9, 1, 2, 2, 10, 1, 12);     // min
    EXPECT_DOUBLE(1e-3, 1, 2, 2, 10, 1, 13);     // max
    EXPECT_DOUBLE(1e-9, 1, 2, 2, 10, 1, 14);     // zero_threshold
    // sum 7: data_points 1: as_int 6, attributes 7; aggregation_temporality 2; is_monotonic 3
    EXPECT_INT(2, 1, 2, 2, 7, 1, 6);
    EXPECT_TEXT("create", 1, 2, 2, 7, 1, 7, 2, 1);
    EXPECT_INT(1, 1, 2, 2, 7, 2);
    EXPECT_INT(1, 1, 2, 2, 7, 3);
    histogram_free(&h);
    buffer_free(&stored);
    buffer_free(&out);
}

// -- the end --------------------------------------------------------------------------------------

static void the_rest_at_its_end(void **state) {
    (void)state;
    start();
    AWAIT(status(OTLP_TRACES).sending);
    keep(clock_wall() / SECOND / 10 * 10, "create", 1); // which goes on
    otlp_stop(otlp);
    otlp = NULL;
    assert_int_equal(seen_spans(), 2);
    fixture_expect("SELECT request_id FROM otlp_state", "1");
}

// Other headers are used at once, by both signals; what is none changes nothing.
static void other_headers(void **state) {
    char why[OTLP_WHY_BYTES];
    (void)state;
    want("\r\nToken: new\r\n");
    start();
    keep(long_ago(), "create", 2);
    count(long_ago(), "create", (uint64_t[]){5000}, 1);
    AWAIT(strstr(status(OTLP_TRACES).why, "401") && strstr(status(OTLP_METRICS).why, "401"));
    assert_true(otlp_renew(otlp, "Token: wrong", why));
    assert_true(otlp_renew(otlp, "Token: new\nOther: one", why));
    AWAIT(status(OTLP_TRACES).sending && status(OTLP_METRICS).sending);
    AWAIT(seen_spans() == 3 && seen_points() == 2);
    assert_false(otlp_renew(otlp, "Token", why));
    assert_non_null(strstr(why, "line 1 is no \"Name: value\""));
    keep(long_ago(), "create", 0);
    AWAIT(seen_spans() == 4);
    assert_true(otlp_renew(otlp, NULL, why));
    keep(long_ago(), "create", 0);
    AWAIT(strstr(status(OTLP_TRACES).why, "401"));
}

static void no_end_waits_long(void **state) {
    (void)state;
    slow = true;
    start();
    keep(long_ago(), "create", 1);
    AWAIT(asked > 0);
    time_t began = time(NULL);
    otlp_stop(otlp);
    otlp = NULL;
    assert_true(time(NULL) - began < LIMIT_EXPORT_ANSWER_SECONDS / 2);
    fixture_expect("SELECT request_id FROM otlp_state", "0");
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {CASE(a_request_as_a_trace),
                                       CASE(parts_are_one_trace),
                                       CASE(asked_for_from_outside),
                                       CASE(away_and_back),
                                       CASE(what_is_refused_stops_no_other),
                                       CASE(what_is_all_refused_waits),
                                       CASE(what_it_takes_in_part),
                                       CASE(statistics_as_metrics),
                                       CASE(one_that_takes_no_metrics),
                                       CASE(rows_that_cannot_be_sent),
                                       CASE(a_batch_in_part),
                                       CASE(in_batches),
                                       cmocka_unit_test(traces_have_the_fields_of_otlp),
                                       cmocka_unit_test(metrics_have_the_fields_of_otlp),
                                       CASE(other_headers),
                                       CASE(the_rest_at_its_end),
                                       CASE(no_end_waits_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
