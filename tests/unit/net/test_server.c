// SPDX-License-Identifier: Apache-2.0
#include "net/server.h"

#include <netinet/tcp.h>
#include <sys/resource.h>

#include "base/limits.h"
#include "server_fixture.h"

static void session(void **state) {
    (void)state;
    struct shim s = shim();
    assert_int_equal(seen.hellos, 1);
    assert_int_equal(s.session, session_id(seen.session));
    say(s.control, "clock");
    UNTIL(seen.messages == 1);
    assert_string_equal(seen.last_type, "clock");
    say(s.control, "what is this");
    UNTIL(seen.messages == 2);
    server_ping(server);
    assert_true(hears(s.control, "ping", NULL));
    // data before the tiers are known waits, also what comes with the hello in one go
    s.data = peer();
    say_hello_and(s.data, &(struct hello){"data", 1, s.session, slice_of(s.key, 16), NULL, 0},
                  "first");
    UNTIL(seen.begins == 1);
    put(s.data, " second", 7);
    turn(50);
    assert_int_equal(seen.data.len, 0);
    say(s.control, "tiers");
    UNTIL(seen.data.len == 12);
    assert_memory_equal(seen.data.data, "first second", 12);
    assert_true(session_streams(seen.session));
    // and comes at once from then on
    put(s.data, " third", 6);
    UNTIL(seen.data.len == 18);
    say(s.control, "tiers"); // sent again: nothing changes
    UNTIL(seen.messages == 4);
    // a new trace port: the connection before ends
    int again = data_peer(&s);
    put(again, "x", 1);
    UNTIL(seen.begins == 2 && seen.ends == 1 && seen.data.len == 19);
    UNTIL(is_closed(s.data));
    close(s.data);
    close(again);
    UNTIL(seen.ends == 2);
    assert_false(session_streams(seen.session));
    assert_int_equal(seen.closed, 0);
    // the control connection takes the data with it, when nothing more comes
    s.data = data_peer(&s);
    UNTIL(seen.begins == 3);
    close(s.control);
    UNTIL(seen.closed == 1 && seen.ends == 3);
    UNTIL(is_closed(s.data));
    close(s.data);
}

// A shim that closes while pings lie unread resets the connection. What it said before is read,
// also where the next ping has failed by then.
static void last_words(void **state) {
    (void)state;
    struct shim s = shim();
    server_ping(server);
    turn(50);
    // as shims have it: none of it waits for a word that the one before has come
    assert_int_equal(setsockopt(s.control, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0);
    say(s.control, "trace_total");
    say(s.control, "trace_stopped");
    close(s.control);
    server_ping(server);
    UNTIL(seen.closed == 1);
    assert_int_equal(seen.messages, 2);
    assert_string_equal(seen.last_type, "trace_stopped");
}

// While the last data are read, the shim is told that its last words have come.
static void heard(void **state) {
    (void)state;
    struct shim s = shim();
    say(s.control, "tiers");
    s.data = data_peer(&s);
    UNTIL(seen.begins == 1);
    assert_int_equal(shutdown(s.control, SHUT_WR), 0);
    UNTIL(is_closed(s.control));
    assert_int_equal(seen.closed, 0);
    put(s.data, "last", 4);
    UNTIL(seen.data.len == 4);
    close(s.data);
    UNTIL(seen.closed == 1);
    close(s.control);
}

// Several data connections of a session, each with its number; and those that are not taken.
static void streams(void **state) {
    (void)state;
    static struct shim shims[LIMIT_MORE_STREAMS];
    struct shim s = shim();
    int more[LIMIT_STREAMS];
    say(s.control, "tiers");
    s.data = data_peer(&s);
    UNTIL(seen.begins == 1 && seen.stream == 0);
    for (int i = 1; i < (int)LIMIT_STREAMS; i++) {
        more[i] = more_data(&s, i);
        UNTIL(seen.begins == i + 1 && seen.stream == (uint32_t)i);
    }
    put(more[5], "five", 4);
    UNTIL(seen.data.len == 4 && seen.stream == 5);
    put(s.data, "none", 4);
    UNTIL(seen.data.len == 8 && seen.stream == 0);
    // no such number, and one that is there
    const int64_t wrong[] = {LIMIT_STREAMS, -1, INT64_MAX, INT64_MIN, 5};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int fd = more_data(&s, wrong[i]);
        UNTIL(is_closed(fd));
        close(fd);
    }
    assert_int_equal(seen.begins, LIMIT_STREAMS);
    // one is lost, and comes back
    close(more[5]);
    UNTIL(seen.ends == 1 && seen.stream == 5);
    assert_true(session_streams(seen.session));
    more[5] = more_data(&s, 5);
    UNTIL(seen.begins == LIMIT_STREAMS + 1 && seen.stream == 5);
    // of all sessions together: each has its first
    unsigned taken = LIMIT_STREAMS - 1, begun = (unsigned)seen.begins;
    for (unsigned i = 0; i < 3; i++) {
        shims[i] = shim();
        say(shims[i].control, "tiers");
        shims[i].data = data_peer(&shims[i]);
        begun++;
        UNTIL((unsigned)seen.begins == begun);
        for (int64_t k = 1; k < LIMIT_STREAMS && taken < LIMIT_MORE_STREAMS; k++, taken++) {
            more_data(&shims[i], k);
            begun++;
            UNTIL((unsigned)seen.begins == begun);
        }
    }
    int late = more_data(&shims[2], 2);
    UNTIL(is_closed(late));
    close(late);
    // a new trace ends those of the one before, and there is room again
    int ended = seen.ends;
    s.data = data_peer(&s);
    begun++;
    UNTIL(seen.ends == ended + (int)LIMIT_STREAMS && (unsigned)seen.begins == begun);
    for (int i = 1; i < (int)LIMIT_STREAMS; i++) {
        UNTIL(is_closed(more[i]));
        close(more[i]);
    }
    more[1] = more_data(&shims[2], 2);
    begun++;
    UNTIL((unsigned)seen.begins == begun);
    // the control connection takes all of them with it, when nothing more comes
    close(shims[0].control);
    UNTIL(seen.closed == 1 && seen.ends == ended + 2 * (int)LIMIT_STREAMS);
}

// A data connection that ends before it may be read is noticed then, with what it brought.
static void early_end(void **state) {
    (void)state;
    struct shim s = shim();
    s.data = data_peer(&s);
    put(s.data, "last words", 10);
    UNTIL(seen.begins == 1);
    close(s.data);
    turn(30);
    say(s.control, "tiers");
    UNTIL(seen.data.len == 10 && seen.ends == 1);
    close(s.control);
    UNTIL(seen.closed == 1);
}

// What a shim sent before it closed is read, however long it takes, though its farewell is seen
// first.
static void last_bytes(void **state) {
    (void)state;
    static const char bytes[100 * 1024];
    struct shim s = shim();
    say(s.control, "tiers");
    s.data = data_peer(&s);
    UNTIL(seen.begins == 1);
    close(s.control);
    UNTIL(session_leaves(seen.session));
    int late = more_data(&s, 1);
    UNTIL(is_closed(late));
    close(late);
    for (size_t i = 1; i <= 10; i++) {
        put(s.data, bytes, sizeof bytes);
        UNTIL(seen.data.len == i * sizeof bytes);
        assert_int_equal(seen.closed, 0);
    }
    put(s.data, bytes, sizeof bytes);
    close(s.data);
    UNTIL(seen.closed == 1 && seen.ends == 1);
    assert_int_equal(seen.data.len, 11 * sizeof bytes);
}

// Of what has come, each piece but the last is told to have more behind it.
static void more_behind(void **state) {
    (void)state;
    static const char bytes[100 * 1024];
    struct shim s = shim();
    s.data = data_peer(&s);
    UNTIL(seen.begins == 1);
    put(s.data, bytes, sizeof bytes);
    say(s.control, "tiers");
    UNTIL(seen.data.len == sizeof bytes && seen.pieces == 0);
    assert_true(seen.most_pieces > 0);
    put(s.data, "x", 1);
    UNTIL(seen.data.len == sizeof bytes + 1);
    assert_int_equal(seen.pieces, 0);
    close(s.data);
    close(s.control);
    UNTIL(seen.closed == 1);
}

static void strangers(void **state) {
    (void)state;
    struct shim s = shim();
    uint8_t other[16];
    memcpy(other, s.key, 16);
    other[15] ^= 1;
    const struct hello wrong[] = {
        {"data", 1, s.session, slice_of(other, 16), NULL, 0},     // another key
        {"data", 1, s.session, slice_of(s.key, 15), NULL, 0},     // a part of it
        {"data", 1, s.session, slice_of(s.key, 0), NULL, 0},      // none
        {"data", 1, s.session + 1, slice_of(s.key, 16), NULL, 0}, // another session
        {"data", 1, 0, slice_of(s.key, 16), NULL, 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int fd = peer();
        say_hello(fd, &wrong[i]);
        UNTIL(is_closed(fd));
        close(fd);
    }
    assert_int_equal(seen.begins, 0);
    // other releases and refusals are told why
    int fd = peer();
    say_hello(fd, &(struct hello){"control", 2, 0, slice_text(""), "n@h", 0});
    assert_true(
        hears(fd, "bye", "this collector speaks protocol 1: use the shim of the same release"));
    UNTIL(is_closed(fd));
    close(fd);
    fd = peer();
    say_hello(fd, &(struct hello){"control", 1, 0, slice_text(""), NULL, 0});
    assert_true(hears(fd, "bye", "no thanks"));
    UNTIL(is_closed(fd));
    close(fd);
    // no hello, no message, no protocol
    static const struct {
        size_t len;
        const char *bytes;
    } nonsense[] = {{18, "GET / HTTP/1.0\r\n\r\n"},
                    {3, "\x16\x03\x01"},
                    {1, "\x83"},
                    {4, "\0\0\0\0"},
                    {4, "\0\x10\0\1"},
                    {5, "\0\0\0\1\xc0"},
                    {9, "\0\0\0\5\xdd\x3d\x0a\xdd\x3d"},
                    {5, "\0\0\0\1\x80"}};
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        fd = peer();
        put(fd, nonsense[i].bytes, nonsense[i].len);
        UNTIL(is_closed(fd));
        close(fd);
    }
    fd = peer();
    say(fd, "clock");
    UNTIL(is_closed(fd));
    close(fd);
    // who goes away in the middle, or at once
    fd = peer();
    put(fd, "\0\0\1", 3);
    close(fd);
    close(peer());
    turn(20);
    // none of this touched the session
    say(s.control, "clock");
    UNTIL(seen.messages == 1);
    assert_int_equal(seen.hellos, 1);
    // nor may a session send nonsense
    put(s.control, "\0\0\0\1\xc0", 5);
    UNTIL(is_closed(s.control) && seen.closed == 1);
    close(s.control);
}

static void refused_data(void **state) {
    (void)state;
    struct shim s = shim();
    say(s.control, "tiers");
    seen.refuse_data = true;
    s.data = data_peer(&s);
    UNTIL(is_closed(s.data));
    close(s.data);
    assert_int_equal(seen.begins, 1);
    assert_int_equal(seen.ends, 0); // what never began does not end
    seen.refuse_data = false;
    seen.refuse_bytes = true;
    s.data = data_peer(&s);
    put(s.data, "no frame", 8);
    UNTIL(is_closed(s.data) && seen.ends == 1);
    close(s.data);
    assert_int_equal(seen.closed, 0); // the session goes on, and may try again
    seen.refuse_bytes = false;
    s.data = data_peer(&s);
    UNTIL(seen.begins == 3);
    // bytes that are refused when the tiers set them free, in the middle of the control message
    close(s.data);
    UNTIL(seen.ends == 2);
    close(s.control);
    UNTIL(seen.closed == 1);
    s = shim();
    s.data = data_peer(&s);
    put(s.data, "no frame", 8);
    UNTIL(seen.begins == 4);
    turn(20);
    seen.refuse_bytes = true;
    say(s.control, "tiers");
    UNTIL(is_closed(s.data) && seen.ends == 3);
    say(s.control, "clock");
    UNTIL(strcmp(seen.last_type, "clock") == 0);
    close(s.data);
    close(s.control);
    UNTIL(seen.closed == 2);
}

// Byte by byte a message arrives as well; several in one go, too.
static void in_pieces(void **state) {
    (void)state;
    struct buffer b = buffer_make(1 << 20);
    struct shim s = shim();
    for (int i = 0; i < 5; i++) {
        struct control_writer w = control_begin(&b, i == 4 ? "tiers" : "clock", 1);
        control_text(&w, "text", slice_text("something"));
        assert_true(control_end(&w));
    }
    for (size_t i = 0; i < b.len; i++) {
        put(s.control, b.data + i, 1);
    }
    UNTIL(seen.messages == 5);
    put(s.control, b.data, b.len);
    UNTIL(seen.messages == 10);
    // as long as one may be, and one byte more
    buffer_reset(&b);
    uint8_t *large = calloc(1, LIMIT_CONTROL_BYTES);
    struct buffer full = buffer_make(LIMIT_CONTROL_BYTES + 64);
    struct control_writer w = control_begin(&full, "note", 1);
    control_bytes(&w, "text", slice_of(large, LIMIT_CONTROL_BYTES - 21));
    assert_true(control_end(&w));
    assert_int_equal(full.len, LIMIT_CONTROL_BYTES + 4);
    put(s.control, full.data, full.len);
    UNTIL(seen.messages == 11);
    assert_string_equal(seen.last_type, "note");
    put(s.control, "\0\x10\0\1", 4);
    UNTIL(is_closed(s.control));
    free(large);
    buffer_free(&full);
    buffer_free(&b);
    close(s.control);
}

// What waits to be sent is capped; who does not read loses messages, and nobody else does.
static void output_cap(void **state) {
    (void)state;
    struct shim s = shim();
    struct session *slow = seen.session;
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES + 64);
    uint8_t *large = calloc(1, 1000000);
    struct control_writer w = control_begin(&b, "stats", 1);
    control_bytes(&w, "rows", slice_of(large, 1000000));
    assert_true(control_end(&w));
    int taken = 0;
    while (taken < 40 && session_send(slow, &b)) {
        taken++;
        turn(5);
    }
    assert_true(taken >= 4 && taken < 40);
    assert_false(session_send(slow, &b));
    struct shim other = shim();
    assert_true(session_send(seen.session, &b));
    assert_true(hears(other.control, "stats", NULL));
    // it reads after all: whole messages, as many as were taken, and then new ones
    for (int i = 0; i < taken; i++) {
        assert_true(hears(s.control, "stats", NULL));
    }
    assert_true(session_send(slow, &b));
    assert_true(hears(s.control, "stats", NULL));
    free(large);
    buffer_free(&b);
    close(s.control);
    close(other.control);
    UNTIL(seen.closed == 2);
}

// Sends until no more may wait. Returns how many bytes were taken.
static size_t fill_output(struct session *s, const struct buffer *b) {
    size_t taken = 0;
    while (taken < 100 * b->len * 10 && session_send(s, b)) {
        taken += b->len;
        turn(1);
    }
    return taken;
}

// Peers that read nothing have so much waiting for them all together, however many they are; who
// says little is heard all the same, and when some are gone there is room again.
static void output_total(void **state) {
    (void)state;
    enum { SLOW = 16, PIECE = 100000 };
    static uint8_t piece[PIECE];
    struct shim shims[SLOW];
    struct session *sessions[SLOW];
    size_t all = 0, in_kernel = 0;
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES), little = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "stats", 1);
    control_bytes(&w, "rows", slice_of(piece, sizeof piece));
    assert_true(control_end(&w));
    w = control_begin(&little, "ping", 0);
    assert_true(control_end(&w));
    for (int i = 0; i < SLOW; i++) {
        shims[i] = shim();
        sessions[i] = seen.session;
        size_t taken = fill_output(sessions[i], &b);
        all += taken;
        // what the first has taken that does not wait here
        in_kernel = i == 0 ? taken - LIMIT_OUTPUT_BYTES + b.len : in_kernel;
        // those that come when nearly all is taken may send little only
        assert_true(taken > 0 || i > 3);
    }
    assert_true(all <= LIMIT_OUTPUT_ALL_BYTES + SLOW * (in_kernel + b.len));
    assert_true(all >= LIMIT_OUTPUT_ALL_BYTES / 4 * 3);
    int more = 0; // that the kernel has taken since then, and what made room
    for (int i = 0; i < SLOW; i++) {
        while (session_send(sessions[i], &b)) {
            assert_true(++more < 2 * SLOW);
        }
    }
    struct shim other = shim();
    assert_true(session_send(seen.session, &little));
    assert_true(hears(other.control, "ping", NULL));
    for (int i = 0; i < SLOW; i++) {
        close(shims[i].control);
    }
    UNTIL(seen.closed == SLOW);
    struct shim late = shim();
    assert_true(fill_output(seen.session, &b) >= LIMIT_OUTPUT_BYTES - b.len);
    close(other.control);
    close(late.control);
    buffer_free(&b);
    buffer_free(&little);
}

// Large control messages are taken a few at a time: who begins one more is closed, and may come
// back. Small ones are taken meanwhile.
static void large_messages(void **state) {
    (void)state;
    enum { LARGE = LIMIT_CONTROL_LARGE, MORE = 3, HALF = 400000 };
    static uint8_t bytes[2 * HALF];
    int fds[LARGE + MORE];
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "tiers", 1);
    control_bytes(&w, "tiers", slice_of(bytes, sizeof bytes));
    assert_true(control_end(&w));
    for (int i = 0; i < LARGE; i++) {
        fds[i] = shim().control;
        put(fds[i], b.data, HALF);
    }
    turn(100);
    assert_int_equal(seen.closed, 0);
    for (int i = LARGE; i < LARGE + MORE; i++) {
        fds[i] = shim().control;
        send(fds[i], b.data, LIMIT_CONTROL_SMALL, MSG_NOSIGNAL);
        UNTIL(seen.closed == i - LARGE + 1);
    }
    assert_int_equal(closed_of(fds, LARGE), 0);
    assert_int_equal(closed_of(fds + LARGE, MORE), MORE);
    struct shim small = shim();
    say(small.control, "clock");
    UNTIL(seen.messages == 1);
    // one is over, another one's sender is gone: there is room for two
    put(fds[0], b.data + HALF, b.len - HALF);
    UNTIL(seen.messages == 2);
    close(fds[1]);
    UNTIL(seen.closed == MORE + 1);
    for (int i = 0; i < 2; i++) {
        fds[i == 0 ? 1 : LARGE] = shim().control;
        put(fds[i == 0 ? 1 : LARGE], b.data, HALF);
    }
    turn(100);
    assert_int_equal(seen.closed, MORE + 1);
    put(small.control, b.data, LIMIT_CONTROL_SMALL);
    UNTIL(is_closed(small.control));
    for (int i = 0; i < LARGE + 1; i++) {
        close(fds[i]);
    }
    close(small.control);
    buffer_free(&b);
}

// From 127.0.0.`last`.
static int peer_from(uint32_t last) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000 | last)};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(server_port(server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    event_base_loop(base, EVLOOP_NONBLOCK);
    return fd;
}

// Who floods the port crowds out its own kind, the oldest first; whoever else comes, and who is
// there, is served.
static void newcomer_caps(void **state) {
    (void)state;
    enum { HERE = LIMIT_NEWCOMERS_PER_ADDRESS, MORE = 30 };
    struct shim s = shim();
    int here[HERE + MORE], there[HERE + MORE];
    for (unsigned i = 0; i < HERE + MORE; i++) {
        here[i] = peer_from(9);
    }
    UNTIL(closed_of(here, HERE + MORE) == MORE);
    assert_int_equal(closed_of(here, MORE), MORE);
    assert_int_equal(closed_of(here + MORE, HERE), 0);
    struct shim other = shim(); // of another address
    assert_int_equal(closed_of(here + MORE, HERE), 0);
    // newcomers of all addresses together
    for (unsigned i = 0; i < HERE + MORE; i++) {
        there[i] = peer_from(10 + i);
    }
    UNTIL(closed_of(here, HERE + MORE) + closed_of(there, HERE + MORE) ==
          2 * (HERE + MORE) - LIMIT_NEWCOMERS);
    assert_int_equal(closed_of(there, HERE + MORE), 0);
    struct shim third = shim();
    // one that was said to be too many is not counted any more
    say(s.control, "clock");
    say(other.control, "clock");
    say(third.control, "clock");
    UNTIL(seen.messages == 3);
    for (unsigned i = 0; i < HERE + MORE; i++) {
        close(here[i]);
        close(there[i]);
    }
    close(s.control);
    close(other.control);
    close(third.control);
    UNTIL(seen.closed == 3);
}

// All connections together: past the cap the newest goes, whatever it is.
static void connection_cap(void **state) {
    (void)state;
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 3 * LIMIT_CONNECTIONS) {
        skip();
    }
    static struct shim shims[LIMIT_CONNECTIONS];
    for (unsigned i = 0; i < LIMIT_CONNECTIONS; i++) {
        shims[i] = shim();
    }
    turn(50);
    for (unsigned i = 0; i < LIMIT_CONNECTIONS; i++) {
        assert_false(is_closed(shims[i].control));
    }
    int late = peer();
    UNTIL(is_closed(late));
    close(late);
    say(shims[0].control, "clock");
    UNTIL(seen.messages == 1);
    close(shims[1].control); // and there is room again
    UNTIL(seen.closed == 1);
    shims[1] = shim();
    for (unsigned i = 0; i < LIMIT_CONNECTIONS; i++) {
        close(shims[i].control);
    }
    UNTIL(seen.closed == LIMIT_CONNECTIONS + 1);
}

// Who says nothing, or something too slowly, is closed; a shim at work is not, whatever its data
// connection does.
static void silence(void **state) {
    (void)state;
    struct shim s = shim();
    s.data = data_peer(&s);
    int silent = peer(), slow = peer();
    double start = now(), silent_for = 0, slow_for = 0;
    static const uint8_t hello[] = "\0\0\0\x40\x81\xa4type\xa5hello";
    for (size_t i = 0;
         now() < start + 2 * LIMIT_HELLO_SECONDS && (silent_for == 0 || slow_for == 0); i++) {
        if (slow_for == 0 && i < sizeof hello - 1) {
            send(slow, hello + i, 1, MSG_NOSIGNAL);
        }
        turn(500);
        if (silent_for == 0 && is_closed(silent)) {
            silent_for = now() - start;
        }
        if (slow_for == 0 && is_closed(slow)) {
            slow_for = now() - start;
        }
    }
    assert_true(silent_for > LIMIT_HELLO_SECONDS - 0.5);
    assert_true(slow_for > LIMIT_HELLO_SECONDS - 0.5);
    assert_false(is_closed(s.control));
    assert_false(is_closed(s.data));
    close(silent);
    close(slow);
    close(s.data);
    close(s.control);
    UNTIL(seen.closed == 1);
}

static void goodbye(void **state) {
    (void)state;
    struct shim s = shim();
    s.data = data_peer(&s);
    int half = peer();
    UNTIL(seen.begins == 1);
    turn(20);
    server_free(server);
    server = NULL;
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.closed, 1);
    assert_true(hears(s.control, "bye", "the collector is shutting down"));
    assert_true(is_closed(s.control) && is_closed(s.data) && is_closed(half));
    close(s.control);
    close(s.data);
    close(half);
}

static void addresses(void **state) {
    (void)state;
    const char *why = NULL;
    assert_null(server_new(
        base, &(struct server_options){.address = "127.0.0.1", .port = server_port(server)},
        &events, &why)); // in use
    assert_string_equal(why, strerror(EADDRINUSE));
    assert_null(server_new(base, &(struct server_options){.address = "localhost"}, &events, &why));
    assert_string_equal(why, "not an IP address");
    assert_null(server_new(base, &(struct server_options){.address = "192.0.2.1"}, &events, &why));
    assert_string_equal(why, strerror(EADDRNOTAVAIL));
    struct server *six =
        server_new(base, &(struct server_options){.address = "::1"}, &events, &why);
    if (six) { // where there is IPv6
        assert_true(server_port(six) > 0);
        server_free(six);
    }
    fail_alloc_at(0);
    struct server *none =
        server_new(base, &(struct server_options){.address = "127.0.0.1"}, &events, &why);
    fail_alloc_at(-1);
    assert_null(none);
    assert_string_equal(why, "out of memory");
}

// A thread that reads for the event loop tells all that has come before the visitor gets in, takes
// no more of what is refused, and is asleep when there is nothing to read.
static void crowded(void **state) {
    (void)state;
    enum { SHIMS = 20, PIECES = 50 };
    static const char piece[9000];
    struct shim shims[SHIMS];
    for (int i = 0; i < SHIMS; i++) {
        shims[i] = shim();
        say(shims[i].control, "tiers");
        shims[i].data = data_peer(&shims[i]);
    }
    UNTIL(seen.begins == SHIMS);
    for (int k = 0; k < PIECES; k++) {
        for (int i = 0; i < SHIMS; i++) {
            put(shims[i].data, piece, sizeof piece);
        }
        if (k == PIECES / 2) { // one goes in the middle, once it is read, with another in its place
            UNTIL(seen.data.len == (size_t)SHIMS * (size_t)(k + 1) * sizeof piece);
            close(shims[0].data);
            shims[0].data = data_peer(&shims[0]);
        }
    }
    UNTIL(seen.data.len == SHIMS * PIECES * sizeof piece);
    UNTIL(seen.ends == 1 && seen.begins == SHIMS + 1);
    for (int i = 0; i < SHIMS; i++) {
        close(shims[i].data);
        close(shims[i].control);
    }
    UNTIL(seen.closed == SHIMS && seen.ends == SHIMS + 1);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define APART(f) cmocka_unit_test_setup_teardown(f, setup_apart, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        UNIT(session),
        UNIT(early_end),
        UNIT(last_bytes),
        UNIT(more_behind),
        UNIT(strangers),
        UNIT(refused_data),
        UNIT(in_pieces),
        UNIT(output_cap),
        UNIT(newcomer_caps),
        UNIT(connection_cap),
        UNIT(silence),
        UNIT(goodbye),
        UNIT(addresses),
        UNIT(output_total),
        UNIT(large_messages),
        UNIT(streams),
        UNIT(last_words),
        UNIT(heard),
        UNIT(crowded),
        // with a thread that reads
        APART(session),
        APART(early_end),
        APART(last_bytes),
        APART(more_behind),
        APART(refused_data),
        APART(goodbye),
        APART(streams),
        APART(last_words),
        APART(heard),
        APART(silence),
        APART(crowded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
