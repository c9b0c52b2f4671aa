// SPDX-License-Identifier: Apache-2.0
#include "app/shim_link.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/flames.h"
#include "app/triggers.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text_time.h"

static const int64_t SILENT_NS = 3000000000; // of a shim that says something every second
// Between two notes that a node was restarted: one that restarts over and over leaves room for
// those of people.
enum { RESTARTS_S = 600 };

static const char *name_of(const struct shim_link *link) {
    return pipeline_node_name(link->node);
}

void shim_link_tell(const struct shim_link *link, enum log_level level, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_from(&(struct log_origin){format, &link->seen->lines}, level, "node %s: %s", name_of(link),
             text);
}

// Before anything that has to do with its node's pipeline, and after it.
static void visit(const struct shim_link *link) {
    pipeline_visit(link->ingest->pipeline);
}

static void part(const struct shim_link *link) {
    pipeline_part(link->ingest->pipeline);
}

// -- its life -------------------------------------------------------------------------------------

static struct shim_link *link_of(const struct shim_links *links, const struct pipeline_node *node) {
    struct shim_link *l = links->first;
    while (l && l->node != node) {
        l = l->next;
    }
    return l;
}

// Whether the node may connect: nobody of its name is there, or one who lives no more. A machine
// that lost its power or its network says no farewell, and shims tell their time every second. Two
// living nodes of a name do not push each other out.
static bool make_way(const struct shim_links *links, const struct pipeline_node *node) {
    struct shim_link *there = link_of(links, node);
    bool leaves = there && session_leaves(there->session);
    if (there && !leaves && clock_monotonic() - there->heard < SILENT_NS) {
        return false;
    }
    if (there) {
        if (!leaves) {
            shim_link_tell(there, LOG_WARNING, "silent, and back on another connection");
        }
        session_dismiss(there->session, "the node has connected anew");
    }
    return true;
}

// What `kprof nodes` tells of a node besides its name.
static void note_origin(struct roster_node *n, struct control_map hello, const char *peer) {
    struct slice otp = slice_text(""), version = slice_text("");
    control_get_text(hello, FIELD_OTP, &otp);
    control_get_text(hello, FIELD_VERSION, &version);
    control_get_int(hello, FIELD_OS_PID, &n->os_pid);
    names_clean(otp, n->otp, sizeof n->otp);
    names_clean(version, n->version, sizeof n->version);
    snprintf(n->peer, sizeof n->peer, "%s", peer);
}

// A node that was here before, and is another emulator now, has restarted. That is a note, which
// numbers can be compared with: once in ten minutes at most.
static void note_restart(const struct shim_links *links, struct roster_node *n, struct slice name,
                         struct control_map hello) {
    int64_t now = clock_wall(), now_s = now / 1000000000, before = n->creation;
    struct note note;
    if (!control_get_int(hello, FIELD_CREATION, &n->creation) || before == 0 ||
        before == n->creation || now_s < n->restarted_s + RESTARTS_S || !links->writer) {
        return;
    }
    if (note_make(&note, now, name, slice_text("restarted")) && writer_note(links->writer, &note)) {
        n->restarted_s = now_s;
    }
}

// The pipeline that has the fewest connected nodes.
static uint32_t least_busy(const struct shim_links *links) {
    uint32_t nodes[LIMIT_PIPELINES] = {0}, least = 0;
    for (const struct shim_link *l = links->first; l; l = l->next) {
        nodes[l->ingest - links->ingests]++;
    }
    for (uint32_t i = 1; i < links->ingest_count; i++) {
        least = nodes[i] < nodes[least] ? i : least;
    }
    return least;
}

// The node of a name, of the pipeline that has it, or else of the one that has least to do.
static struct pipeline_node *find_or_add(struct shim_links *links, struct slice name,
                                         struct shim_ingest **ingest) {
    uint32_t first = least_busy(links);
    struct pipeline_node *node = NULL;
    for (uint32_t i = 0; !node && i < links->ingest_count; i++) {
        *ingest = &links->ingests[(first + i) % links->ingest_count];
        pipeline_visit((*ingest)->pipeline);
        node = pipeline_node((*ingest)->pipeline, name);
        pipeline_part((*ingest)->pipeline);
    }
    return node;
}

// The same. When there are as many nodes as may be, one that is gone makes room: the one that has
// been gone for longest, of those of which everything is written.
static struct pipeline_node *node_of(struct shim_links *links, struct slice name,
                                     struct shim_ingest **ingest) {
    struct pipeline_node *node = find_or_add(links, name, ingest);
    if (!node) {
        bool used[LIMIT_NODES];
        pipeline_used_nodes(links->ingests[0].pipeline, used);
        links->steering.mark(links->steering.context, used);
        struct roster_node *oldest = roster_oldest(links->roster, used);
        if (oldest) {
            uint16_t id = pipeline_node_id(oldest->node);
            struct pipeline *p = pipeline_of(oldest->node);
            roster_forget(links->roster, oldest);
            pipeline_visit(p);
            pipeline_forget(p, id);
            pipeline_part(p);
            node = find_or_add(links, name, ingest);
        }
    }
    return node;
}

static void *on_hello(void *context, struct session *s, struct control_map hello,
                      const char **refusal) {
    struct shim_links *links = context;
    struct slice name = {0}, otp = {0};
    int64_t ticks = 0, offset = 0;
    control_get_text(hello, FIELD_OTP, &otp);
    if (!control_get_text(hello, FIELD_NODE, &name) || name.len == 0 ||
        !control_get_int(hello, FIELD_TICKS_PER_SECOND, &ticks) || ticks < 1 ||
        ticks > 1000000000000 || !control_get_int(hello, FIELD_TIME_OFFSET, &offset)) {
        *refusal = "the hello lacks node, ticks_per_second or time_offset";
        return NULL;
    }
    struct shim_ingest *ingest = NULL;
    struct pipeline_node *node = node_of(links, name, &ingest);
    if (!node) {
        *refusal =
            "too many nodes: the collector has no room for one more until a node is gone and its "
            "statistics are written";
        return NULL;
    }
    if (!make_way(links, node)) {
        *refusal = "a node of this name is connected already";
        return NULL;
    }
    struct shim_link *link = calloc(1, sizeof *link);
    if (!link) {
        *refusal = "out of memory";
        return NULL;
    }
    link->links = links;
    link->node = node;
    link->node_id = pipeline_node_id(node);
    link->ingest = ingest;
    link->said = buffer_make(LIMIT_SAID_BYTES / links->ingest_count);
    link->seen = roster_join(links->roster, link->node_id, node, clock_wall());
    if (!link->seen) {
        *refusal = "out of memory";
        free(link);
        return NULL;
    }
    note_origin(link->seen, hello, session_peer(s));
    note_restart(links, link->seen, name, hello);
    link->session = s;
    link->heard = clock_monotonic();
    link->next = links->first;
    if (link->next) {
        link->next->previous = link;
    }
    links->first = link;
    visit(link);
    pipeline_set_clock(node, ticks, offset);
    pipeline_set_user(node, link);
    part(link);
    log_from(&(struct log_origin){.source = &link->seen->lines}, LOG_INFO,
             "node %s (OTP %.*s) connected from %s", name_of(link),
             (int)(otp.len < 16 ? otp.len : 16), otp.data ? (const char *)otp.data : "",
             session_peer(s));
    return link;
}

// -- its stream -----------------------------------------------------------------------------------

void shim_link_settle(struct shim_link *link) {
    bool comes =
        session_streams(link->session) && link->total.labels == pipeline_labels(link->node);
    if (link->total.labels > 0 && !comes) {
        uint64_t lost = pipeline_total(link->node, &link->total);
        if (lost > 0) {
            shim_link_tell(link, LOG_WARNING, "%" PRIu64 " trace messages were lost on their way",
                           lost);
        }
        link->total.labels = 0;
    }
}

void shim_link_end_stream(struct shim_link *link) {
    int64_t cut;
    if (!link->streaming) {
        return;
    }
    link->streaming = false;
    merge_end(link->merge);
    merge_free(link->merge);
    link->merge = NULL;
    if (pipeline_end(link->node, link->stopped_cleanly, &cut)) {
        shim_link_tell(link, LOG_WARNING,
                       "the trace stream ended in the middle of a frame, at byte %" PRId64, cut);
    }
    recording_end(link->recording);
    link->recording = NULL;
}

// Bytes of the node's stream, as its data connections bring them, put in order.
static int64_t take_bytes(void *context, struct slice bytes) {
    struct shim_link *link = context;
    if (link->recording) {
        recording_add(link->recording, bytes);
    }
    return pipeline_feed(link->node, bytes);
}

static bool begin_stream(struct shim_link *link) {
    struct pipeline_stream stream = {.live = true, .markers = true, .entry = TIER_NONE};
    int64_t cut;
    link->stopped_cleanly = false;
    shim_link_end_stream(link);
    if (!pipeline_begin(link->node, &stream)) {
        return false;
    }
    link->merge = merge_new(link->node, take_bytes, link);
    if (!link->merge) {
        pipeline_end(link->node, true, &cut);
        return false;
    }
    link->streaming = true;
    if (link->links->record.dir) {
        link->recording = recording_start(&link->links->record, name_of(link),
                                          session_id(link->session), clock_wall());
    }
    return true;
}

static bool begin_data(struct shim_link *link, uint32_t stream) {
    if (stream > 0 && !link->streaming) {
        shim_link_tell(link, LOG_WARNING, "data connection %" PRIu32 " without a trace", stream);
        return false;
    }
    if ((stream == 0 && !begin_stream(link)) || !merge_open(link->merge, stream)) {
        shim_link_tell(link, LOG_ERROR, "out of memory");
        return false;
    }
    if (stream > 0) { // what it brings may be of before what others have brought already
        pipeline_full_lost(link->node);
    }
    return true;
}

static bool on_data_begin(void *user, uint32_t stream) {
    struct shim_link *link = user;
    visit(link);
    bool begun = begin_data(link, stream);
    part(link);
    return begun;
}

static struct intake *intake_of(void *user) {
    const struct shim_link *link = user;
    return link->ingest->intake;
}

// On the thread of the node's pipeline, behind its gate.
static bool on_data(void *user, uint32_t stream, struct slice bytes, bool more) {
    struct shim_link *link = user;
    link->fed_apart = intake_of(link);
    int64_t damaged = merge_feed(link->merge, stream, bytes, more);
    link->fed_apart = false;
    if (damaged >= 0) {
        shim_link_tell(link, LOG_WARNING, "no trace frame at byte %" PRId64 " of its stream",
                       damaged);
    }
    return damaged < 0;
}

// A connection has ended. Whether anything was lost with the last one the shim tells on the control
// connection, a moment later.
static void end_data(struct shim_link *link, uint32_t stream) {
    link->stopped_cleanly = link->stopped_cleanly || link->links->shutting_down;
    merge_close(link->merge, stream, link->stopped_cleanly);
    if (session_streams(link->session)) {
        return;
    }
    merge_end(link->merge);
    shim_link_settle(link);
    if (link->stopped_cleanly) {
        shim_link_end_stream(link);
    }
}

static void on_data_end(void *user, uint32_t stream) {
    struct shim_link *link = user;
    visit(link);
    end_data(link, stream);
    part(link);
}

static void on_message(void *user, struct slice type, struct control_map message) {
    struct shim_link *link = user;
    visit(link);
    shim_link_message(link, type, message);
    part(link);
}

void shim_links_tick(struct shim_links *links, struct pipeline_now now) {
    for (uint32_t i = 0; i < links->ingest_count; i++) {
        struct shim_ingest *ingest = &links->ingests[i];
        pipeline_visit(ingest->pipeline);
        pipeline_tick(ingest->pipeline, now);
        for (struct shim_link *link = links->first; link; link = link->next) {
            if (link->ingest == ingest && link->merge) {
                merge_tick(link->merge);
            }
        }
        pipeline_part(ingest->pipeline);
    }
}

static void on_closed(void *user) {
    struct shim_link *link = user;
    struct pipeline *pipeline = link->ingest->pipeline;
    pipeline_visit(pipeline);
    shim_link_end_stream(link);
    flame_lost(link->links->flames, link);
    stack_run_lost(&link->links->flames->runs, link);
    log_from(&(struct log_origin){.source = &link->seen->lines}, LOG_INFO, "node %s disconnected",
             name_of(link));
    roster_leave(link->seen, clock_wall());
    pipeline_set_user(link->node, NULL);
    pipeline_want_calls(link->node, false);
    if (link->previous) {
        link->previous->next = link->next;
    } else {
        link->links->first = link->next;
    }
    if (link->next) {
        link->next->previous = link->previous;
    }
    triggers_p99_free(link->p99);
    shim_link_unsay(link);
    free(link);
    pipeline_part(pipeline);
}

struct server_events shim_link_events(struct shim_links *links) {
    return (struct server_events){.context = links,
                                  .hello = on_hello,
                                  .message = on_message,
                                  .data_begin = on_data_begin,
                                  .data = on_data,
                                  .data_end = on_data_end,
                                  .intake = intake_of,
                                  .closed = on_closed};
}
