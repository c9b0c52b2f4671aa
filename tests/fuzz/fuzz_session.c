// SPDX-License-Identifier: Apache-2.0
// The session state machine: connections of shims, tools and strangers that come, say hello or
// anything else, prove that they know the secret or do not, bring data, fall silent and go, in any
// order and in pieces, at a server with all that the collector has behind it. Every connection is
// where its session says, nobody has a session without the secret, and when all are gone nothing is
// left.
#include <arpa/inet.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/shim_link.h"
#include "app/tool_link.h"
#include "base/log.h"
#include "fuzz_collector.h"
#include "ingest/pipeline.h"
#include "net/internal.h"

enum { PEERS = 5 };

static const char SECRET[] = "a secret that both sides know";
static const uint8_t NONCE[AUTH_NONCE_BYTES] = "a nonce";

struct peer {
    int fd; // -1: not connected
    struct auth auth;
};

static struct peer peers[PEERS];
static struct event_base *base;
static struct server *server;
static struct shim_links links;
static struct tool_links tools;
static struct flames flames;
static struct roster roster;
static bool proven; // somebody has proven that it knows the secret

static unsigned number; // of the run, among those that share a pipeline

static void make_server(void) {
    const char *why = "";
    struct server_events shims = shim_link_events(&links), others = tool_link_events(&tools);
    signal(SIGPIPE, SIG_IGN);
    base = event_base_new();
    server = server_new(base, &(struct server_options){.address = "127.0.0.1"}, &shims, &why);
    MUST(server);
    server_take_tools(server, &others);
}

static void pump(void) {
    for (int i = 0; i < 3; i++) {
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
}

// -- what must hold -------------------------------------------------------------------------------

static void check(void) {
    uint32_t connections = 0, newcomers = 0, controls = 0, datas = 0, sessions = 0, told = 0,
             streams = 0, more = 0, of_tools = 0;
    for (const struct connection *c = server->connections.newest; c; c = c->next) {
        connections++;
        MUST(!c->next || c->next->previous == c);
        newcomers += c->state == STATE_HELLO;
        controls += c->state == STATE_CONTROL;
        datas += c->state == STATE_DATA;
        MUST((c->state == STATE_HELLO) == (c->owned_by == &server->newcomers));
        MUST(c->state == STATE_HELLO || !c->auth);
        MUST(c->state != STATE_CONTROL || ((const struct session *)c->owned_by)->control == c);
        MUST(c->state != STATE_DATA || ((const struct session *)c->owned_by)->data[c->stream] == c);
    }
    for (const struct session *s = server->sessions.newest; s; s = s->next) {
        sessions++;
        of_tools += session_is_tool(s);
        streams += s->streams;
        more += s->streams > 0 ? s->streams - 1 : 0;
        MUST(s->user && s->control && s->control->owned_by == s &&
             (s->streams == 0 || !session_is_tool(s)));
    }
    for (const struct shim_link *l = links.first; l; l = l->next) {
        told++;
        MUST(l->seen->connected &&
             session_find(&server->sessions, session_id(l->session)) == l->session);
        for (const struct shim_link *other = l->next; other; other = other->next) {
            MUST(other->node != l->node);
        }
    }
    MUST(connections == server->connections.count && newcomers <= LIMIT_NEWCOMERS &&
         controls == sessions && datas == streams && more == server->sessions.more_streams &&
         more <= LIMIT_MORE_STREAMS);
    MUST(told + of_tools == sessions && of_tools == server->sessions.tool_count &&
         of_tools <= LIMIT_TOOLS);
    MUST(server->sessions.secret.len == 0 || proven || sessions == 0);
}

// -- what peers do --------------------------------------------------------------------------------

static void leaves(struct peer *p) {
    if (p->fd >= 0) {
        close(p->fd);
    }
    *p = (struct peer){.fd = -1};
}

static void comes(struct peer *p, uint8_t from) {
    int fds[2];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(4711),
                                  .sin_addr.s_addr = htonl(0x0a000000u | from % 4)};
    leaves(p);
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    p->fd = fds[0];
    newcomer_accept(&server->newcomers, fds[1], (const struct sockaddr *)&address);
}

static void sends(const struct peer *p, const struct buffer *b) {
    if (p->fd >= 0 && !b->failed) {
        (void)!send(p->fd, b->data, b->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

// Reads what came, and throws it away but for the last `most` bytes that fit. Returns how many.
static size_t reads(const struct peer *p, uint8_t *bytes, size_t most) {
    ssize_t got = p->fd >= 0 ? recv(p->fd, bytes, most, MSG_DONTWAIT) : -1;
    return got > 0 ? (size_t)got : 0;
}

// The next step of a handshake; with the right secret, or with another one.
static void proves(struct peer *p, uint8_t how, struct buffer *b) {
    static const char *const roles[] = {"control", "tool", "data", "?"};
    static uint8_t got[1 << 16];
    struct slice key = how < 250 ? slice_text(SECRET) : slice_text("a secret that is wrong");
    int64_t session = how / 4 % 8;
    size_t len = reads(p, got, sizeof got);
    if (p->auth.count == 0) {
        auth_begin(&p->auth, roles[how % 4], how % 4 == 2 ? session : 0, NONCE, b);
        sends(p, b);
        return;
    }
    const struct session *of =
        strcmp(p->auth.role, "data") == 0 ? session_find(&server->sessions, p->auth.session) : NULL;
    if (p->auth.count == 2 || p->auth.count == 1) {
        if (!auth_answer(&p->auth, of ? slice_of(of->auth_key, AUTH_KEY_BYTES) : key,
                         slice_of(got, len), b)) {
            proven = proven || how < 250;
            sends(p, b);
        }
    }
}

static void brings_data(struct fuzz_input *in, struct buffer *b) {
    const struct session *s = server->sessions.newest;
    uint8_t how = fuzz_u8(in);
    for (int i = how % 4; i > 0 && s && s->next; i--) {
        s = s->next;
    }
    uint8_t stream = fuzz_u8(in);
    struct control_writer w = control_begin(b, "hello", stream < 128 ? 4 : 5);
    if (stream >= 128) {
        control_int(&w, "stream", stream - 192);
    }
    control_text(&w, "role", slice_text("data"));
    control_int(&w, "protocol", 1);
    control_int(&w, "session", s ? s->id : how);
    control_bytes(&w, "key", s && how < 240 ? slice_of(s->key, KEY_BYTES) : fuzz_bytes(in, 20));
    control_end(&w);
}

static void asks(struct fuzz_input *in, struct buffer *b) {
    static const char *const types[] = {"nodes", "watch", "steer",     "pong",
                                        "?",     "flame", "flame_stop"};
    static const char *const commands[] = {"pause",       "resume",       "sample",
                                           "trigger_add", "trigger_list", "?"};
    uint8_t how = fuzz_u8(in);
    struct control_writer w = control_begin(b, types[how % 7], 6);
    control_text(&w, "node", slice_text(how / 7 % 8 == 7 ? "" : fuzz_name(number, how / 7 % 3u)));
    control_text(&w, "command", slice_text(commands[how / 16 % 6]));
    control_int(&w, "one_in", fuzz_number(in, 1));
    control_int(&w, "per_second", fuzz_number(in, 1));
    control_int(&w, "requests", fuzz_number(in, 1));
    control_int(&w, "seconds", fuzz_number(in, 1));
    control_end(&w);
}

static void time_passes(uint8_t by) {
    int64_t passed = (int64_t)by * 100000000;
    if (by == 255) { // who has not said hello within five seconds goes
        for (struct connection *c = server->connections.newest; c; c = c->next) {
            c->since -= LIMIT_HELLO_SECONDS * 1000000000LL;
        }
    }
    if (by == 254) { // shims have been silent
        for (struct shim_link *l = links.first; l; l = l->next) {
            l->heard -= 60000000000;
        }
    }
    newcomer_sweep(&server->newcomers);
    server_ping(server);
    shim_links_tick(&links,
                    (struct pipeline_now){clock_wall() + passed, clock_monotonic() + passed});
    roster_second(&roster);
    tool_link_second(&tools, clock_monotonic() + passed);
    flame_tick(&flames, clock_monotonic() + passed, true);
}

static void step(struct fuzz_input *in, struct buffer *b) {
    enum { COME, HELLO, TOOL, DATA, PROVE, SAY, ASK, FRAMES, BYTES, LEAVE, TIME, READ, STEPS };
    static uint8_t got[1 << 16];
    struct slice any;
    uint8_t what = fuzz_u8(in), who = fuzz_u8(in);
    struct peer *p = &peers[who % PEERS];
    buffer_reset(b);
    switch (what % STEPS) {
    case COME:
        comes(p, who / PEERS);
        break;
    case HELLO:
        fuzz_hello(b, in, "control", fuzz_name(number, who / PEERS % 3u));
        break;
    case TOOL:
        fuzz_hello(b, in, "tool", fuzz_name(number, 0));
        break;
    case DATA:
        brings_data(in, b);
        break;
    case PROVE:
        proves(p, fuzz_u8(in), b);
        buffer_reset(b);
        break;
    case SAY:
        fuzz_message(b, in, clock_monotonic());
        break;
    case ASK:
        asks(in, b);
        break;
    case FRAMES:
        for (int i = what / STEPS % 8; i >= 0; i--) {
            fuzz_frame(b, in, clock_monotonic());
        }
        break;
    case BYTES:
        any = fuzz_bytes(in, 255);
        buffer_append(b, any.data, any.len);
        break;
    case LEAVE:
        leaves(p);
        break;
    case TIME:
        time_passes(fuzz_u8(in));
        break;
    case READ:
        reads(p, got, sizeof got);
        break;
    }
    sends(p, b);
    if (who < 200) { // else with what comes next
        pump();
        check();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct pipeline *pipeline;
    struct fuzz_input in = {data, size};
    struct pipeline_options options = {.bucket_s = 10,
                                       .timeout_ns = 30000000000,
                                       .identify = shim_link_identify,
                                       .disarm = shim_link_disarm,
                                       .stale = shim_link_stale,
                                       .calls = shim_link_calls,
                                       .slow = shim_link_slow};
    struct buffer b = buffer_make(1 << 20);
    if (!pipeline || ++number == FUZZ_RUNS) {
        roster_free(&roster);
        pipeline_free(pipeline);
        pipeline = pipeline_new(&options);
        number = 0;
    }
    if (!server) {
        log_set_level(LOG_ERROR);
        make_server();
    }
    struct secret secret = {0};
    if (fuzz_u8(&in) & 1) {
        memcpy(secret.bytes, SECRET, sizeof SECRET - 1);
        secret.len = sizeof SECRET - 1;
    }
    server_set_keys(server, secret.len > 0 ? &secret : NULL, NULL);
    proven = false;
    flames.pipeline = flames.runs.pipeline = pipeline;
    links = (struct shim_links){.ingests = {{.links = &links, .pipeline = pipeline}},
                                .ingest_count = 1,
                                .roster = &roster,
                                .steering = tool_link_steering(&tools),
                                .flames = &flames,
                                .slow_ns = 1000000};
    tools = (struct tool_links){
        .pipeline = pipeline, .shims = &links, .roster = &roster, .flames = &flames};
    server->sessions.last_id = 0;
    for (int i = 0; i < PEERS; i++) {
        peers[i] = (struct peer){.fd = -1};
    }
    pipeline_tick(pipeline, (struct pipeline_now){clock_wall(), clock_monotonic()});
    while (in.left > 0) {
        step(&in, &b);
    }
    pump();
    check();
    if (size % 2 == 0) { // they go, or the collector ends
        for (int i = 0; i < PEERS; i++) {
            leaves(&peers[i]);
        }
        pump();
    }
    while (server->connections.newest) {
        connection_close(server->connections.newest);
    }
    check();
    flames_end(&flames);
    MUST(!flames.first && flames.count == 0);
    MUST(!server->sessions.newest && !links.first && !tools.first && !tools.watches &&
         server->connections.count == 0);
    for (int i = 0; i < PEERS; i++) {
        leaves(&peers[i]);
    }
    buffer_free(&b);
    return 0;
}
