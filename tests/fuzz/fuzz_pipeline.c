// SPDX-License-Identifier: Apache-2.0
// The pipeline as a whole: two nodes that say hello, tell their tiers, clocks, totals and gaps,
// stream frames in pieces, and come and go in any order, through what the collector does with them;
// without sockets. Every complete request stands in the ledger once.
#include "app/rows.h"
#include "app/shim_link.h"
#include "app/tool_link.h"
#include "base/log.h"
#include "fuzz_collector.h"
#include "ingest/pipeline.h"

#include "../unit/native_bytes.h"

enum { FUZZ_STREAMS = 3 }; // of a session

// A session, as far as shim_link.c needs one.
static struct fake {
    bool open, full;
    bool leaves; // of its connections those with data are left
    bool streams[FUZZ_STREAMS];
    void *user;
} fakes[FUZZ_NODES];

static struct server_events events;

static struct fake *fake_of(const struct session *s) {
    return (struct fake *)(uintptr_t)s;
}

static void end_data(struct fake *f, uint32_t number) {
    if (f->streams[number]) {
        f->streams[number] = false;
        events.data_end(f->user, number);
    }
}

static void end_all_data(struct fake *f) {
    for (uint32_t i = 0; i < FUZZ_STREAMS; i++) {
        end_data(f, i);
    }
}

static void end_session(struct fake *f) {
    end_all_data(f);
    f->open = f->leaves = false;
    events.closed(f->user);
}

bool __wrap_session_send(struct session *s, const struct buffer *messages);
void __wrap_session_ready(struct session *s);
const char *__wrap_session_peer(const struct session *s);
int64_t __wrap_session_id(const struct session *s);
bool __wrap_session_streams(const struct session *s);
bool __wrap_session_leaves(const struct session *s);
void __wrap_session_dismiss(struct session *s, const char *reason);

// What is sent must be a message that the other side can read.
bool __wrap_session_send(struct session *s, const struct buffer *messages) {
    struct slice rest = slice_of(messages->data, messages->len), payload;
    MUST(!messages->failed);
    while (rest.len > 0) {
        long n = control_frame(rest, &payload);
        MUST(n > 0);
        struct control *c = control_decode(payload);
        MUST(c);
        control_free(c);
        rest = slice_of(rest.data + n, rest.len - (size_t)n);
    }
    return !fake_of(s)->full;
}

void __wrap_session_ready(struct session *s) {
    MUST(fake_of(s)->open);
}

const char *__wrap_session_peer(const struct session *s) {
    (void)s;
    return "127.0.0.1:4711";
}

int64_t __wrap_session_id(const struct session *s) {
    return fake_of(s) - fakes + 1;
}

bool __wrap_session_streams(const struct session *s) {
    bool any = false;
    for (uint32_t i = 0; i < FUZZ_STREAMS; i++) {
        any = any || fake_of(s)->streams[i];
    }
    return any;
}

bool __wrap_session_leaves(const struct session *s) {
    return fake_of(s)->leaves;
}

static bool has_streams(const struct fake *f) {
    return __wrap_session_streams((const struct session *)f);
}

// A data connection is over, and with the last one a session that leaves.
static void over(struct fake *f, uint32_t number) {
    end_data(f, number);
    if (f->leaves && !has_streams(f)) {
        end_session(f);
    }
}

void __wrap_session_dismiss(struct session *s, const char *reason) {
    (void)reason;
    end_session(fake_of(s));
}

// -- one run --------------------------------------------------------------------------------------

struct run {
    struct pipeline *pipeline;
    struct stats *spare;
    struct roster *roster;
    unsigned number; // of those that share the pipeline
    struct shim_links links;
    struct tool_links tools;
    struct flames flames; // of which only shims' come
    uint64_t complete;    // in the ledgers that were handed out
    int64_t passed;       // of the time that the collector is told
    struct buffer bytes;
};

static int64_t now_of(const struct run *r) {
    return clock_monotonic() + r->passed;
}

// Has a message that was put together decoded and handed on.
static void say(struct run *r, struct fake *f) {
    struct slice payload, type = {0};
    long n = control_frame(slice_of(r->bytes.data, r->bytes.len), &payload);
    struct control *c = n > 0 ? control_decode(payload) : NULL;
    if (c && f->leaves) {
        // nobody hears it
    } else if (c && f->open) {
        control_get_text(control_root(c), "type", &type);
        events.message(f->user, type, control_root(c));
    } else if (c) {
        const char *why = "";
        f->open = true; // it may send from within
        f->user =
            events.hello(events.context, (struct session *)(uintptr_t)f, control_root(c), &why);
        f->open = f->user != NULL;
        MUST(f->open || *why);
    }
    control_free(c);
}

static void flush(struct run *r) {
    stats_reset(r->spare);
    r->spare = pipeline_swap(r->pipeline, r->spare);
    fuzz_check_stats(r->spare, &r->complete);
    struct rows rows = {r->spare, pipeline_directory(r->pipeline), 10};
    buffer_reset(&r->bytes);
    for (uint32_t from = 0; rows_json(&rows, &from, &r->bytes);) {
        buffer_reset(&r->bytes);
    }
    for (struct shim_link *link = r->links.first; link; link = link->next) {
        buffer_reset(&r->bytes);
        rows_messages(&rows, link->node_id, &r->bytes);
        if (link->stats_wanted && r->bytes.len > 0) {
            shim_link_send(link, &r->bytes);
        }
    }
}

static void data(struct run *r, struct fake *f, uint32_t number) {
    if (f->streams[number] &&
        !events.data(f->user, number, slice_of(r->bytes.data, r->bytes.len), false)) {
        over(f, number);
    }
}

// As a session does it.
static void begin_data(struct fake *f, uint32_t number) {
    if (number == 0) {
        end_all_data(f);
    }
    if (!f->streams[number]) {
        f->streams[number] = events.data_begin(f->user, number);
    }
}

// What frames of terms say, as blocks of up to five messages; one byte of them may be another one.
static void make_blocks(struct run *r, struct fuzz_input *in) {
    struct buffer blocks = buffer_make(r->bytes.cap);
    uint8_t changed = fuzz_u8(in);
    native_of_terms(slice_of(r->bytes.data, r->bytes.len), 5, &blocks);
    if (changed >= FRAME_HEADER && changed < blocks.len) {
        blocks.data[changed] ^= fuzz_u8(in);
    }
    buffer_free(&r->bytes);
    r->bytes = blocks;
}

static void step(struct run *r, struct fake *f, const char *name, struct fuzz_input *in) {
    enum { HELLO, SAY, BEGIN, FRAMES, BYTES, END, CLOSE, TICK, FLUSH, PASS, LIST, BLOCKS, STEPS };
    struct slice any;
    uint8_t what = fuzz_u8(in);
    buffer_reset(&r->bytes);
    f->full = what >= 250;
    switch (what % STEPS) {
    case HELLO:
        if (!f->open) {
            fuzz_hello(&r->bytes, in, "control", name);
            say(r, f);
        }
        break;
    case SAY:
        if (f->open) {
            fuzz_message(&r->bytes, in, now_of(r));
            say(r, f);
        }
        break;
    case BEGIN:
        if (f->open && !f->leaves) {
            begin_data(f, what / STEPS % FUZZ_STREAMS);
        }
        break;
    case FRAMES:
        for (int i = what / STEPS % 8; i >= 0; i--) {
            fuzz_frame(&r->bytes, in, now_of(r));
        }
        data(r, f, what / STEPS / 8 % FUZZ_STREAMS);
        break;
    case LIST:
        fuzz_list(&r->bytes, in, now_of(r), what / STEPS % 8);
        data(r, f, what / STEPS / 8 % FUZZ_STREAMS);
        break;
    case BLOCKS:
        for (int i = what / STEPS % 8; i >= 0; i--) {
            fuzz_frame(&r->bytes, in, now_of(r));
        }
        make_blocks(r, in);
        data(r, f, what / STEPS / 8 % FUZZ_STREAMS);
        break;
    case BYTES:
        any = fuzz_bytes(in, 255);
        buffer_append(&r->bytes, any.data, any.len);
        data(r, f, what / STEPS % FUZZ_STREAMS);
        break;
    case END:
        over(f, what / STEPS % FUZZ_STREAMS);
        break;
    case CLOSE:
        f->leaves = f->open && has_streams(f) && what / STEPS % 2 == 0;
        if (f->open && !f->leaves) {
            end_session(f);
        }
        break;
    case PASS:
        r->passed += (int64_t)fuzz_u8(in) * 50000000; // up to 13 s
        // fall through
    case TICK:
        shim_links_tick(&r->links, (struct pipeline_now){clock_wall() + r->passed, now_of(r)});
        flame_tick(&r->flames, now_of(r), true);
        roster_second(r->roster);
        break;
    case FLUSH:
        flush(r);
        break;
    }
}

static struct run kept;
static uint64_t complete_before; // of all nodes, in the runs before

// What a run leaves for the next one: its sets of statistics and its buffer may be others by now.
static void keep(const struct run *r) {
    kept.spare = r->spare;
    kept.bytes = r->bytes;
}

// The same pipeline for some runs, all of which leave it empty.
static struct run begin(void) {
    static struct roster roster;
    if (kept.pipeline && ++kept.number < FUZZ_RUNS) {
        return kept;
    }
    roster_free(&roster);
    complete_before = 0;
    pipeline_free(kept.pipeline);
    stats_free(kept.spare);
    buffer_free(&kept.bytes);
    struct pipeline_options options = {.bucket_s = 10,
                                       .timeout_ns = 30000000000,
                                       .identify = shim_link_identify,
                                       .disarm = shim_link_disarm,
                                       .stale = shim_link_stale,
                                       .calls = shim_link_calls,
                                       .slow = shim_link_slow};
    kept = (struct run){.pipeline = pipeline_new(&options),
                        .spare = stats_new(),
                        .roster = &roster,
                        .bytes = buffer_make(4 << 20)};
    MUST(kept.pipeline && kept.spare);
    return kept;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    struct run r = begin();
    uint64_t complete = 0;
    log_set_level(LOG_ERROR);
    r.flames.pipeline = r.flames.runs.pipeline = r.pipeline;
    r.links = (struct shim_links){.ingests = {{.links = &r.links, .pipeline = r.pipeline}},
                                  .ingest_count = 1,
                                  .roster = r.roster,
                                  .steering = tool_link_steering(&r.tools),
                                  .flames = &r.flames,
                                  .slow_ns = 1000000};
    r.tools = (struct tool_links){
        .pipeline = r.pipeline, .shims = &r.links, .roster = r.roster, .flames = &r.flames};
    events = shim_link_events(&r.links);
    pipeline_tick(r.pipeline, (struct pipeline_now){clock_wall(), clock_monotonic()});
    while (in.left > 0) {
        uint8_t who = fuzz_u8(&in);
        step(&r, &fakes[who % FUZZ_NODES], fuzz_name(r.number, who / FUZZ_NODES % FUZZ_NODES), &in);
    }
    r.links.shutting_down = true;
    for (int i = 0; i < FUZZ_NODES; i++) {
        if (fakes[i].open) {
            end_session(&fakes[i]);
        }
    }
    MUST(!r.links.first);
    flames_end(&r.flames);
    MUST(!r.flames.first);
    flush(&r);
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        complete += r.roster->nodes[i] ? pipeline_totals(r.roster->nodes[i]->node).complete : 0;
    }
    MUST(complete - complete_before == r.complete);
    complete_before = complete;
    keep(&r);
    return 0;
}
