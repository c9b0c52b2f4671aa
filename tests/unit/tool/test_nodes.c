// SPDX-License-Identifier: Apache-2.0
// kprof nodes, trace and trigger against a collector's own parts (roster.c, tool_link.c,
// triggers.c, pipeline.c) in a process of its own, with a shim that is played here.
#include "tool/nodes/nodes.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/roster.h"
#include "app/tool_link.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/client.h"
#include "tool_fixture.h"

// -- the collector's process: two nodes, one of them connected through a shim ---------------------

static struct event_base *base;
static struct pipeline *p;
static struct roster roster;
static struct tool_links tools;
static struct shim_links shims;
static struct flames flames;

static void on_time(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    (void)context;
    static int ticks;
    if (++ticks % 5 == 0) { // 50 ms stand for a second
        roster_second(&roster);
        tool_link_second(&tools, clock_monotonic());
    }
}

static void run_collector(int ports) {
    struct pipeline_options options = {.bucket_s = 10, .timeout_ns = 30000000000};
    const char *why;
    log_set_level(LOG_ERROR + 1);
    base = event_base_new();
    p = pipeline_new(&options);
    pipeline_tick(p, (struct pipeline_now){clock_wall(), clock_monotonic()});
    shims = (struct shim_links){.ingests = {{.links = &shims, .pipeline = p}},
                                .ingest_count = 1,
                                .roster = &roster,
                                .steering = tool_link_steering(&tools),
                                .flames = &flames,
                                .slow_ns = INT64_MAX};
    tools = (struct tool_links){.pipeline = p,
                                .shims = &shims,
                                .roster = &roster,
                                .flames = &flames,
                                .database = "/there/kprof.db"};
    struct roster_node *gone =
        roster_join(&roster, directory_node(pipeline_directory(p), slice_text("old@h")),
                    pipeline_node(p, slice_text("old@h")), clock_wall());
    for (int i = 0; i < 40; i++) {
        roster_event(gone, clock_wall(), "event %d\033[2J", i);
    }
    roster_leave(gone, clock_wall());
    struct server_events shim_events = shim_link_events(&shims),
                         tool_events = tool_link_events(&tools);
    struct server *s =
        server_new(base, &(struct server_options){.address = "127.0.0.1"}, &shim_events, &why);
    server_take_tools(s, &tool_events);
    struct event *timer = event_new(base, -1, EV_PERSIST, on_time, NULL);
    event_add(timer, &(struct timeval){0, 10000});
    uint16_t port = server_port(s);
    _exit(write(ports, &port, sizeof port) != sizeof port || event_base_dispatch(base) < 0);
}

static pid_t child;
static uint16_t port;

// -- the shim -------------------------------------------------------------------------------------

static int shim;

static void say(struct buffer *b, struct control_writer *w) {
    assert_true(control_end(w));
    assert_int_equal(write(shim, b->data, b->len), b->len);
    buffer_free(b);
}

static void say_hello(void) {
    struct buffer b = buffer_make(4096);
    struct control_writer w = control_begin(&b, "hello", 8);
    control_text(&w, "role", slice_text("control"));
    control_int(&w, "protocol", 1);
    control_text(&w, "node", slice_text("shop@h"));
    control_text(&w, "otp", slice_text("27"));
    control_text(&w, "version", slice_text("9.9"));
    control_int(&w, "os_pid", 4321);
    control_int(&w, "ticks_per_second", 1000000000);
    control_int(&w, "time_offset", 0);
    say(&b, &w);
}

static void say_state(const char *state, const char *text) {
    struct buffer b = buffer_make(4096);
    struct control_writer w = control_begin(&b, "state", 6);
    control_text(&w, "state", slice_text(state));
    control_text(&w, "text", slice_text(text));
    control_int(&w, "one_in", 0);
    control_int(&w, "per_second", 50);
    control_int(&w, "level_ppm", 12500);
    control_int(&w, "trips", 2);
    say(&b, &w);
}

static void say_clock(void) {
    struct buffer b = buffer_make(4096);
    struct control_writer w = control_begin(&b, "clock", 10);
    control_int(&w, "at", 0);
    control_int(&w, "time_offset", 0);
    control_int(&w, "unsampled", 77);
    control_int(&w, "off_ms", 1500);
    control_int(&w, "tripped_ms", 900);
    control_int(&w, "away_ms", 5000); // more than there is left
    control_int(&w, "trips", 2);
    control_int(&w, "lowered_ms", 300);
    control_int(&w, "unmarked_calls", 4120);
    control_int(&w, "unmarked", 1234567);
    say(&b, &w);
}

// In a process of its own: answers each steer message with what it was told.
static pid_t answering;

// More triggers than a node may have, with names that would steer a terminal.
static void put_triggers(struct control_writer *w) {
    enum { MANY = LIMIT_TRIGGERS + 5 };
    control_list(w, "triggers", MANY);
    control_map(w, 9);
    control_text(w, "name", slice_text("q\033[2J"));
    control_text(w, "trigger", slice_text("message_queue_len"));
    control_int(w, "above", 5000);
    control_number(w, "value", 6100);
    control_int(w, "for_ms", 2000);
    control_int(w, "every_ms", 3600000);
    control_int(w, "began", 1);
    control_int(w, "again_ms", 3500000);
    control_text(w, "process", slice_text("full (<0.9.0>)"));
    control_map(w, 5);
    control_text(w, "name", slice_text("memory"));
    control_text(w, "trigger", slice_text("memory"));
    control_number(w, "above", 2e9);
    control_bool(w, "high_water", true);
    control_text(w, "nothing", slice_text("that is known"));
    for (int i = 2; i < MANY; i++) {
        control_map(w, 1);
        control_text(w, "began", slice_text("of another type"));
    }
}

// What a tool has asked for, as it comes to the shim.
static void put_order(struct control_map m, char *out, size_t room) {
    struct slice what = slice_text(""), tier = slice_text(""), name = slice_text("");
    double above = 0;
    int64_t for_ms = -1, seconds = -1;
    bool high_water = false, all = false;
    control_get_text(m, "trigger", &what);
    control_get_text(m, "tier", &tier);
    control_get_text(m, "name", &name);
    control_get_number(m, "above", &above);
    control_get_int(m, "for_ms", &for_ms);
    control_get_int(m, "seconds", &seconds);
    control_get_bool(m, "high_water", &high_water);
    control_get_bool(m, "all", &all);
    snprintf(out, room, "%.*s|%.*s|%.*s|%.1f|%d|%d|%d%s", (int)what.len, (const char *)what.data,
             (int)tier.len, (const char *)tier.data, (int)name.len, (const char *)name.data, above,
             (int)for_ms, (int)seconds, high_water, all ? "|all" : "");
}

static void answer_steer(bool ok, const char *text) {
    answering = fork();
    if (answering != 0) {
        return;
    }
    static uint8_t bytes[1 << 16];
    size_t have = 0;
    for (;;) {
        ssize_t got = read(shim, bytes + have, sizeof bytes - have);
        struct slice payload;
        if (got <= 0) {
            _exit(0);
        }
        have += (size_t)got;
        for (long size; (size = control_frame(slice_of(bytes, have), &payload)) > 0;
             have -= (size_t)size, memmove(bytes, bytes + size, have)) {
            struct control *c = control_decode(payload);
            struct slice type = {0}, command = {0};
            int64_t id = 0, n = 0;
            control_get_text(control_root(c), "type", &type);
            control_get_int(control_root(c), "id", &id);
            control_get_text(control_root(c), "command", &command);
            control_get_int(control_root(c), "per_second", &n);
            if (slice_is(type, "steer")) {
                char line[400], order[200] = "";
                bool list = slice_is(command, "trigger_list");
                struct buffer b = buffer_make(1 << 16);
                struct control_writer w = control_begin(&b, "steered", list ? 4 : 3);
                if (command.len > 8 && memcmp(command.data, "trigger_", 8) == 0) {
                    put_order(control_root(c), order, sizeof order);
                }
                snprintf(line, sizeof line, "%s %.*s %d%s", text, (int)command.len,
                         (const char *)command.data, (int)n, order);
                if (list) {
                    put_triggers(&w);
                }
                control_int(&w, "id", id);
                control_bool(&w, "ok", ok);
                control_text(&w, "text", slice_text(line));
                say(&b, &w);
            }
            control_free(c);
        }
    }
}

static void no_answer(void) {
    if (answering > 0) {
        kill(answering, SIGKILL);
        waitpid(answering, NULL, 0);
        answering = 0;
    }
}

// -- around a test --------------------------------------------------------------------------------

static int setup(void **state) {
    (void)state;
    int ports[2];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(pipe(ports), 0);
    child = fork();
    if (child == 0) {
        run_collector(ports[1]);
    }
    assert_int_equal(read(ports[0], &port, sizeof port), sizeof port);
    close(ports[0]);
    close(ports[1]);
    to.sin_port = htons(port);
    shim = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(shim, (struct sockaddr *)&to, sizeof to), 0);
    say_hello();
    say_state("tracing", "samples 50 requests a second at most");
    say_clock();
    usleep(200000);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    no_answer();
    close(shim);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}

static int ask(const char *arguments) {
    char line[300];
    snprintf(line, sizeof line, "%s --collector 127.0.0.1:%u", arguments, port);
    return tool_run("LC_ALL=C", line);
}

// -- tests ----------------------------------------------------------------------------------------

static void table(void **state) {
    (void)state;
    assert_int_equal(ask("nodes"), 0);
    expect_part(
        " node    state    since  OTP   pid  req/s  sampling   level  trips    off          lost\n old@h   gone  ");
    expect_part("\n shop@h  tracing");
    expect_part(
        "   27  4321    0.0      50/s  1.25 %      2  1.5 s  0 req, 0 msg\n"
        "   armed; 1,234,567 calls, but nothing has begun a request: give --entry, or mark requests (README, Your own node)\n");
    assert_int_equal(ask("nodes --history"), 0);
    expect_part("  samples 50 requests a second at most\n");
    expect_part("  event 21?[2J\n"); // of 42 events the last 20
    expect_no_part("event 20?");
    expect_part("  disconnected\n");
}

static void chosen(void **state) {
    (void)state;
    assert_int_equal(ask("nodes --node shop"), 0);
    expect_part("\n shop@h  tracing");
    expect_no_part("old@h");
    assert_int_equal(ask("nodes --node old@h --json"), 0);
    expect_json("$.nodes[0].node", "old@h");
    expect_no_part("shop@h");
    assert_int_equal(ask("nodes --node sho"), 1);
    expect_line("kprof nodes: the collector knows no node sho; kprof nodes lists those it knows\n");
}

static void json(void **state) {
    (void)state;
    assert_int_equal(ask("nodes --json"), 0);
    expect_json("$.nodes[0].node", "old@h");
    expect_json("$.nodes[0].connected", "0");
    expect_json("$.nodes[0].state", "gone");
    expect_json("$.nodes[1].node", "shop@h");
    expect_json("$.nodes[1].connected", "1");
    expect_json("$.nodes[1].version", "9.9");
    expect_json("$.nodes[1].per_second", "50");
    expect_json("$.nodes[1].level", "0.0125");
    expect_json("$.nodes[1].trips", "2");
    expect_json("$.nodes[1].unsampled", "77");
    expect_json("$.nodes[1].off_ms", "1500");
    expect_json("$.nodes[1].lowered_ms", "300");
    expect_json("$.nodes[0].unmarked_calls", "0");
    expect_json("$.nodes[1].unmarked_calls", "1234567");
    expect_json("$.nodes[1].history[0].text", "connected");
    expect_json("$.nodes[1].history[1].text", "tracing");
}

static void steering(void **state) {
    (void)state;
    answer_steer(true, "did");
    assert_int_equal(ask("trace shop pause"), 0); // its name alone
    expect_output("shop@h: did pause 0\n");
    assert_int_equal(ask("trace shop@h sample 70/s --json"), 0);
    expect_output(
        "{\"node\":\"shop@h\",\"command\":\"sample\",\"ok\":true,\"text\":\"did sample 70\"}\n");
    no_answer();
    answer_steer(false, "cannot");
    assert_int_equal(ask("trace shop@h resume"), 1);
    expect_line("kprof trace: shop@h: cannot resume 0\n");
    assert_int_equal(ask("trace nobody@h resume"), 1);
    expect_line(
        "kprof trace: the collector knows no node of this name; kprof nodes lists those it knows\n");
    assert_int_equal(ask("trace old@h resume"), 1);
    expect_line("kprof trace: the node is not connected\n");
}

static void triggers(void **state) {
    (void)state;
    answer_steer(true, "did");
    assert_int_equal(ask("trigger shop add tier_p99 http --above 200ms --for 0s --name n"), 0);
    expect_output("shop@h: did trigger_add 0tier_p99|http|n|200.0|0|-1|0\n");
    assert_int_equal(ask("trigger shop add memory --above 2GB --high-water --sample-for 5s"), 0);
    expect_output("shop@h: did trigger_add 0memory|||2000000000.0|-1|5|1\n");
    assert_int_equal(ask("trigger shop remove n"), 0);
    expect_output("shop@h: did trigger_remove 0||n|0.0|-1|-1|0\n");
    assert_int_equal(ask("trigger shop remove --all --json"), 0);
    expect_output("{\"node\":\"shop@h\",\"command\":\"remove\",\"ok\":true,\"text\":\"did "
                  "trigger_remove 0|||0.0|-1|-1|0|all\"}\n");
    assert_int_equal(ask("trigger shop list"), 0);
    expect_part(" trigger   above       for    now   every  runs   next run\n"
                " q?[2J     5,000       2 s  6,100  60 min     1  in 58 min  full (<0.9.0>)\n"
                " memory   2.0 GB  new high      -     0 s     0   any time\n");
    assert_int_equal(ask("trigger shop list --json"), 0);
    expect_json("$.triggers[0].name", "q\033[2J");
    expect_json("$.triggers[0].value", "6100");
    expect_json("$.triggers[1].high_water", "1");
    expect_json("$.triggers[15]", "{}");
    expect_json("$.triggers[#-16].trigger", "message_queue_len"); // no more than those
    expect_no_part("nothing");
    no_answer();
    answer_steer(false, "cannot");
    assert_int_equal(ask("trigger shop add run_queue --above 8"), 1);
    expect_line("kprof trigger: shop@h: cannot trigger_add 0run_queue|||8.0|-1|-1|0\n");
}

static void noting(void **state) {
    (void)state;
    assert_int_equal(ask("note one"), 1);
    expect_line("kprof note: this collector keeps no notes\n");
    assert_int_equal(ask("note one --node nobody"), 1);
    expect_part("the collector knows no node of this name");
}

// A node that goes before it answers, and the seconds that one may take.
static void no_answers(void **state) {
    (void)state;
    if (fork() == 0) {
        char bytes[4096] = "";
        size_t have = 0;
        for (ssize_t got = 1;
             got > 0 && !memmem(bytes, have, "pause", 5) && have<sizeof bytes; have += got> 0
                 ? (size_t)got
                 : 0) {
            got = read(shim, bytes + have, sizeof bytes - have);
        }
        shutdown(shim, SHUT_RDWR);
        _exit(0);
    }
    assert_int_equal(ask("trace shop@h pause"), 1);
    expect_line("kprof trace: shop@h: the node is gone\n");
}

static void command_lines(void **state) {
    (void)state;
    const struct {
        const char *arguments, *line;
    } cases[] = {
        {"nodes x", "unexpected argument 'x'"},
        {"nodes --json=1", "kprof nodes: --json takes no value; kprof nodes --help tells more"},
        {"nodes --jso=1", "kprof nodes: --jso takes no value"},
        {"nodes --jsn=1", "kprof nodes: unknown option --jsn=1; "},
        {"nodes --collector", "kprof nodes: --collector needs a value; "},
        {"nodes -x=1", "kprof nodes: unknown option -x; "},
        {"nodes --collector nope", "--collector nope: want HOST:PORT"},
        {"nodes --collector :5", "want HOST:PORT"},
        {"nodes --collector h:0", "want HOST:PORT"},
        {"trigger", "kprof trigger: want NODE and one of add, list, remove; "},
        {"trigger n dance", "'dance' is none of add, list, remove"},
        {"trigger n list x", "unexpected argument 'x'"},
        {"trigger n add", "add what?"},
        {"trigger n add tier_p99 --above 1s", "tier_p99 of which tier?"},
        {"trigger n add run_queue x --above 1", "unexpected argument 'x'"},
        {"trigger n add run_queue", "above what? Say --above N"},
        {"trigger n add run_queue --above 8GB", "--above 8GB: want a number"},
        {"trigger n add run_queue --above -8", "--above -8: want a number"},
        {"trigger n add memory --above 8XB", "--above 8XB: want bytes, such as 2GB"},
        {"trigger n add tier_p99 t --above x", "--above x: want a time such as 200ms"},
        {"trigger n add run_queue --above 8 --for x", "--for x is no length such as 5s"},
        {"trigger n add run_queue --above 8 --hz 0", "--hz 0: want a number from 1 to 1000"},
        {"trigger n add run_queue --above 8 --for 1s --high-water",
         "--for and --high-water exclude each other"},
        {"trigger n remove", "remove which one? Say its name, or --all"},
        {"trigger n remove x --all", "remove which one? Say its name, or --all"},
        {"trigger n remove x y", "unexpected argument 'y'"},
        {"note", "kprof note: what was done? As in: kprof note \"deployed 1.4\""},
        {"note '  '", "what was done?"},
        {"note a b", "unexpected argument 'b'"},
        {"note a --at never", "--at never is no time"},
        {"note \"$(printf %0241d 0)\"", "a text has 240 bytes at most, this one has 241"},
        {"trace", "want NODE and one of pause, resume, sample"},
        {"trace n", "want NODE and one of pause, resume, sample"},
        {"trace n dance", "'dance' is none of pause, resume, sample"},
        {"trace n pause 5", "unexpected argument '5'"},
        {"trace n sample", "sample wants one value"},
        {"trace n sample 0", "sample 0: want a number"},
        {"trace n sample 5/m", "sample 5/m: want a number"},
        {"trace n sample /s", "sample /s: want a number"},
        {"trace n sample 99999999999", "want a number"},
        {"trace n sample 1000001/s", "R from 1 to 1000000,"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tool_run("LC_ALL=C", cases[i].arguments), 2);
        expect_line(cases[i].line);
    }
    assert_int_equal(tool_run("LC_ALL=C", "nodes --collector 127.0.0.1:1"), 1);
    expect_line(
        "kprof nodes: cannot reach the collector at 127.0.0.1:1: Connection refused; name a running one with --collector\n");
}

// What a tool that watches is sent.
static void watching(void **state) {
    (void)state;
    struct client_error e;
    struct client *c = client_open(
        &(struct client_options){.host = "127.0.0.1", .port = port, .timeout_ms = 50000}, &e);
    assert_non_null(c);
    struct buffer b = buffer_make(4096);
    struct control_writer w = control_begin(&b, "watch", 1);
    control_text(&w, "node", slice_text("shop@h"));
    assert_true(control_end(&w) && client_send(c, &b));
    buffer_free(&b);
    // the clock's row, after those that were on their way before it, and one behind it
    for (int i = 0, told = 0; told < 2; i++) {
        struct control *message;
        struct slice type = {0}, name = {0}, doing = {0};
        struct control_list identities = {0};
        double seconds = 0;
        bool connected = false;
        int64_t off = -1;
        assert_int_equal(client_next(c, 50000, &message), CLIENT_MESSAGE);
        struct control_map rows = control_root(message);
        assert_true(control_get_text(rows, "type", &type) && slice_is(type, "rows"));
        assert_true(control_get_text(rows, "node", &name) && slice_is(name, "shop@h"));
        assert_true(control_get_text(rows, "state", &doing) && slice_is(doing, "tracing"));
        assert_true(control_get_bool(rows, "connected", &connected) && connected);
        assert_true(control_get_number(rows, "seconds", &seconds) && seconds >= 0 && seconds < 20);
        assert_true(control_get_list(rows, "identities", &identities) && identities.count == 0);
        assert_true(control_get_int(rows, "off_ms", &off));
        assert_true(off == 0 || (i > 0 && told == 0 && off == 1500));
        told += off == 1500 || told > 0;
        assert_in_range(i, 0, 100);
        control_free(message);
        if (i == 0) {
            say_clock();
        }
    }
    client_close(c);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        UNIT(table),      UNIT(chosen),   UNIT(json),
        UNIT(steering),   UNIT(triggers), UNIT(noting),
        UNIT(no_answers), UNIT(watching), cmocka_unit_test(command_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
