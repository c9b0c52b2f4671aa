#include "net/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "net/auth.h"
#include "unit.h"

// -- a server, and what it told ----------------------------------------------------------------------------------------

static struct event_base *base;
static struct server *server;

static struct {
    struct session *session; // the latest
    int hellos, messages, begins, ends, closed;
    struct buffer data;
    char last_type[32];
    bool refuse, refuse_data, refuse_bytes;
} seen;

static void *on_hello(void *context, struct session *s, struct control_map hello, const char **refusal) {
    assert_ptr_equal(context, &seen);
    struct slice node;
    assert_true(strncmp(session_peer(s), "127.0.0.1:", 10) == 0);
    if (seen.refuse || !control_get_text(hello, "node", &node)) {
        *refusal = "no thanks";
        return NULL;
    }
    seen.hellos++;
    seen.session = s;
    return s;
}

static void on_message(void *user, struct slice type, struct control_map message) {
    (void)message;
    seen.messages++;
    snprintf(seen.last_type, sizeof seen.last_type, "%.*s", (int)type.len, type.len > 0 ? (const char *)type.data : "");
    if (slice_is(type, "tiers")) {
        session_ready(user);
    }
}

static bool on_data_begin(void *user) {
    (void)user;
    seen.begins++;
    return !seen.refuse_data;
}

static bool on_data(void *user, struct slice bytes) {
    assert_true(session_streams(user));
    buffer_append(&seen.data, bytes.data, bytes.len);
    return !seen.refuse_bytes;
}

static void on_data_end(void *user) {
    (void)user;
    seen.ends++;
}

static void on_closed(void *user) {
    assert_false(session_streams(user));
    seen.closed++;
    seen.session = NULL;
}

static const struct server_events events = {&seen, on_hello, on_message, on_data_begin, on_data, on_data_end, on_closed};

static int setup(void **state) {
    (void)state;
    const char *why = NULL;
    memset(&seen, 0, sizeof seen);
    seen.data = buffer_make(64 << 20);
    log_set_level(LOG_ERROR);
    base = event_base_new();
    assert_non_null(base);
    server = server_new(base, &(struct server_options){.address = "127.0.0.1"}, &events, &why);
    assert_non_null(server);
    assert_true(server_port(server) > 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    server_free(server);
    event_base_free(base);
    buffer_free(&seen.data);
    return 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Runs the loop for some ms.
static void turn(int ms) {
    for (double end = now() + ms / 1e3; now() < end;) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        usleep(500);
    }
}

// Runs the loop until something holds, some seconds at most.
#define UNTIL(condition)                                                                                                    \
    do {                                                                                                                    \
        for (double end_ = now() + 10; !(condition) && now() < end_;) {                                                     \
            event_base_loop(base, EVLOOP_NONBLOCK);                                                                         \
            usleep(200);                                                                                                    \
        }                                                                                                                   \
        assert_true(condition);                                                                                             \
    } while (0)

// -- peers -------------------------------------------------------------------------------------------------------------

static int peer(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(server_port(server)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void put(int fd, const void *data, size_t n) {
    size_t at = 0;
    for (double end = now() + 10; at < n && now() < end;) {
        ssize_t sent = send(fd, (const uint8_t *)data + at, n - at, MSG_NOSIGNAL);
        at += sent > 0 ? (size_t)sent : 0;
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    assert_int_equal(at, n);
}

static bool is_closed(int fd) {
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

struct hello {
    const char *role;
    int64_t protocol, session;
    struct slice key;
    const char *node;
};

// Sends a hello, and in the same piece what `more` says.
static void say_hello_and(int fd, const struct hello *h, const char *more) {
    struct buffer b = buffer_make(1 << 20);
    struct control_writer w = control_begin(&b, "hello", 4u + (h->node != NULL));
    control_text(&w, "role", slice_text(h->role));
    control_int(&w, "protocol", h->protocol);
    control_int(&w, "session", h->session);
    control_bytes(&w, "key", h->key);
    if (h->node) {
        control_text(&w, "node", slice_text(h->node));
    }
    assert_true(control_end(&w));
    buffer_text(&b, more);
    put(fd, b.data, b.len);
    buffer_free(&b);
}

static void say_hello(int fd, const struct hello *h) {
    say_hello_and(fd, h, "");
}

static void say(int fd, const char *type) {
    struct buffer b = buffer_make(1 << 20);
    struct control_writer w = control_begin(&b, type, 0);
    assert_true(control_end(&w));
    put(fd, b.data, b.len);
    buffer_free(&b);
}

// The next frame that a peer gets, whole, valid until the next one. Empty when the connection ends.
static struct slice hear_frame(int fd) {
    static uint8_t bytes[(1 << 20) + 4];
    size_t have = 0, want = 4;
    for (double end = now() + 10; now() < end;) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        ssize_t got = recv(fd, bytes + have, want - have, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN)) {
            break;
        }
        have += got > 0 ? (size_t)got : 0;
        if (have >= 4) {
            struct cursor c = cursor_of(bytes, 4);
            want = 4 + cursor_u32(&c);
        }
        if (have == want && have > 4) {
            return slice_of(bytes, have);
        }
    }
    return slice_of(bytes, 0);
}

// The next message that a peer gets; control_free it. NULL when the connection ends.
static struct control *hear(int fd) {
    struct slice frame = hear_frame(fd);
    return frame.len > 0 ? control_decode(slice_of(frame.data + 4, frame.len - 4)) : NULL;
}

static bool hears(int fd, const char *type, const char *reason) {
    struct control *c = hear(fd);
    struct slice got = {0}, why = {0};
    if (!c) {
        return false;
    }
    control_get_text(control_root(c), "type", &got);
    control_get_text(control_root(c), "reason", &why);
    bool ok = slice_is(got, type) && (!reason || slice_is(why, reason));
    control_free(c);
    return ok;
}

struct shim {
    int control, data;
    int64_t session;
    uint8_t key[16];
};

// Says hello and takes the welcome.
static void welcomed(struct shim *s) {
    say_hello(s->control, &(struct hello){"control", 1, 0, slice_text(""), "n@h"});
    struct control *c = hear(s->control);
    struct slice type = {0}, key = {0};
    assert_non_null(c);
    control_get_text(control_root(c), "type", &type);
    assert_true(slice_is(type, "welcome"));
    assert_true(control_get_int(control_root(c), "session", &s->session));
    assert_true(control_get_bytes(control_root(c), "key", &key) && key.len == 16);
    memcpy(s->key, key.data, 16);
    control_free(c);
}

static struct shim shim(void) {
    struct shim s = {.control = peer(), .data = -1};
    welcomed(&s);
    return s;
}

static int data_peer(const struct shim *s) {
    int fd = peer();
    say_hello(fd, &(struct hello){"data", 1, s->session, slice_of(s->key, 16), NULL});
    return fd;
}

// -- tests -------------------------------------------------------------------------------------------------------------

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
    say_hello_and(s.data, &(struct hello){"data", 1, s.session, slice_of(s.key, 16), NULL}, "first");
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
    // the control connection takes the data with it
    s.data = data_peer(&s);
    UNTIL(seen.begins == 3);
    close(s.control);
    UNTIL(seen.closed == 1 && seen.ends == 3);
    UNTIL(is_closed(s.data));
    close(s.data);
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

static void strangers(void **state) {
    (void)state;
    struct shim s = shim();
    uint8_t other[16];
    memcpy(other, s.key, 16);
    other[15] ^= 1;
    const struct hello wrong[] = {
        {"data", 1, s.session, slice_of(other, 16), NULL},      // another key
        {"data", 1, s.session, slice_of(s.key, 15), NULL},      // a part of it
        {"data", 1, s.session, slice_of(s.key, 0), NULL},       // none
        {"data", 1, s.session + 1, slice_of(s.key, 16), NULL},  // another session
        {"data", 1, 0, slice_of(s.key, 16), NULL},
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
    say_hello(fd, &(struct hello){"control", 2, 0, slice_text(""), "n@h"});
    assert_true(hears(fd, "bye", "this collector speaks protocol 1: use the shim of the same release"));
    UNTIL(is_closed(fd));
    close(fd);
    fd = peer();
    say_hello(fd, &(struct hello){"control", 1, 0, slice_text(""), NULL});
    assert_true(hears(fd, "bye", "no thanks"));
    UNTIL(is_closed(fd));
    close(fd);
    // no hello, no message, no protocol
    static const struct {
        size_t len;
        const char *bytes;
    } nonsense[] = {{18, "GET / HTTP/1.0\r\n\r\n"}, {3, "\x16\x03\x01"}, {1, "\x83"},     {4, "\0\0\0\0"},
                    {4, "\0\x10\0\1"},             {5, "\0\0\0\1\xc0"},  {9, "\0\0\0\5\xdd\x3d\x0a\xdd\x3d"}, {5, "\0\0\0\1\x80"}};
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

// From 127.0.0.`last`.
static int peer_from(uint32_t last) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000 | last)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(server_port(server)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    event_base_loop(base, EVLOOP_NONBLOCK);
    return fd;
}

static unsigned closed_of(const int *fds, unsigned n) {
    unsigned closed = 0;
    for (unsigned i = 0; i < n; i++) {
        closed += is_closed(fds[i]);
    }
    return closed;
}

// Who floods the port crowds out its own kind, the oldest first; whoever else comes, and who is there, is served.
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
    UNTIL(closed_of(here, HERE + MORE) + closed_of(there, HERE + MORE) == 2 * (HERE + MORE) - LIMIT_NEWCOMERS);
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

// Who says nothing, or something too slowly, is closed; a shim at work is not, whatever its data connection does.
static void silence(void **state) {
    (void)state;
    struct shim s = shim();
    s.data = data_peer(&s);
    int silent = peer(), slow = peer();
    double start = now(), silent_for = 0, slow_for = 0;
    static const uint8_t hello[] = "\0\0\0\x40\x81\xa4type\xa5hello";
    for (size_t i = 0; now() < start + 2 * LIMIT_HELLO_SECONDS && (silent_for == 0 || slow_for == 0); i++) {
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
    assert_true(silent_for > LIMIT_HELLO_SECONDS - 0.5 && silent_for < LIMIT_HELLO_SECONDS + 2);
    assert_true(slow_for > LIMIT_HELLO_SECONDS - 0.5 && slow_for < LIMIT_HELLO_SECONDS + 3);
    assert_false(is_closed(s.control));
    assert_false(is_closed(s.data));
    close(silent);
    close(slow);
    close(s.data);
    close(s.control);
    UNTIL(seen.closed == 1);
}

// -- with a secret -----------------------------------------------------------------------------------------------------

static const struct secret right = {"0123456789abcdef", 16};

static int setup_secret(void **state) {
    const char *why = NULL;
    setup(state);
    server_free(server);
    server = server_new(base, &(struct server_options){.address = "127.0.0.1", .secret = &right}, &events, &why);
    assert_non_null(server);
    return 0;
}

// Goes through the handshake as a client. NULL, or what was wrong; "bye" when the collector said so.
static const char *prove(int fd, struct auth *a, const char *role, int64_t session_of, struct slice key) {
    static const uint8_t nonce[AUTH_NONCE_BYTES] = "a nonce";
    struct buffer out = buffer_make(1 << 16);
    const char *why = auth_begin(a, role, session_of, nonce, &out);
    put(fd, out.data, out.len);
    struct slice frame = hear_frame(fd);
    buffer_reset(&out);
    why = why ? why : auth_answer(a, key, frame, &out);
    if (!why) {
        put(fd, out.data, out.len);
        frame = hear_frame(fd);
        why = frame.len == 0 ? "closed" : memmem(frame.data, frame.len, "bye", 3) ? "bye" : auth_confirm(a, key, frame);
    }
    buffer_free(&out);
    return why;
}

static void secret(void **state) {
    (void)state;
    struct shim s = {.control = peer(), .data = peer()};
    struct auth a = {0}, d = {0};
    uint8_t key[AUTH_KEY_BYTES];
    assert_null(prove(s.control, &a, "control", 0, secret_slice(&right)));
    assert_int_equal(seen.hellos, 0);
    assert_true(auth_session_key(&a, secret_slice(&right), key));
    welcomed(&s);
    assert_int_equal(seen.hellos, 1);
    assert_null(prove(s.data, &d, "data", s.session, slice_of(key, sizeof key)));
    say_hello_and(s.data, &(struct hello){"data", 1, s.session, slice_of(s.key, 16), NULL}, "first");
    say(s.control, "tiers");
    UNTIL(seen.data.len == 5);
    // a new trace port of the same shim
    int again = peer();
    d = (struct auth){0};
    assert_null(prove(again, &d, "data", s.session, slice_of(key, sizeof key)));
    say_hello(again, &(struct hello){"data", 1, s.session, slice_of(s.key, 16), NULL});
    UNTIL(seen.begins == 2 && seen.ends == 1);
    close(s.data);
    close(again);
    close(s.control);
    UNTIL(seen.closed == 1);
}

// A flood of those who say nothing, from its own address, does not crowd out who has begun to prove it.
static void begun_before_silent(void **state) {
    (void)state;
    enum { FLOOD = 3 * LIMIT_NEWCOMERS_PER_ADDRESS };
    static const uint8_t nonce[AUTH_NONCE_BYTES] = "a nonce";
    int silent[FLOOD], fd = peer();
    struct auth a = {0};
    struct buffer out = buffer_make(1 << 16);
    assert_null(auth_begin(&a, "control", 0, nonce, &out));
    put(fd, out.data, out.len);
    struct slice challenge = hear_frame(fd);
    assert_true(challenge.len > 0);
    for (unsigned i = 0; i < FLOOD; i++) {
        silent[i] = peer();
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    UNTIL(closed_of(silent, FLOOD) == FLOOD - LIMIT_NEWCOMERS_PER_ADDRESS + 1);
    assert_false(is_closed(fd));
    buffer_reset(&out);
    assert_null(auth_answer(&a, secret_slice(&right), challenge, &out));
    put(fd, out.data, out.len);
    assert_null(auth_confirm(&a, secret_slice(&right), hear_frame(fd)));
    for (unsigned i = 0; i < FLOOD; i++) {
        close(silent[i]);
    }
    close(fd);
    buffer_free(&out);
}

// Whoever does not prove it, or proves it for something else, gets no further.
static void no_secret(void **state) {
    (void)state;
    struct shim s = {.control = peer(), .data = -1};
    struct auth a = {0};
    uint8_t key[AUTH_KEY_BYTES];
    assert_null(prove(s.control, &a, "control", 0, secret_slice(&right)));
    assert_true(auth_session_key(&a, secret_slice(&right), key));
    welcomed(&s);
    // no handshake
    int fd = peer();
    say_hello(fd, &(struct hello){"control", 1, 0, slice_text(""), "n@h"});
    assert_true(hears(fd, "bye", "this collector demands its secret: start with --secret-file (start_trace: {secret_file, File})"));
    UNTIL(is_closed(fd));
    close(fd);
    fd = peer();
    say_hello(fd, &(struct hello){"data", 1, s.session, slice_of(s.key, 16), NULL});
    UNTIL(is_closed(fd) || hear_frame(fd).len == 0);
    close(fd);
    // wrong secrets; the right one where the session's key is wanted, and the other way round
    const struct {
        const char *role;
        int64_t session;
        struct slice key;
    } wrong[] = {{"control", 0, slice_text("0123456789abcdee")}, {"tool", 0, slice_text("0123456789abcdee")},
                 {"data", s.session, secret_slice(&right)},      {"control", 0, slice_of(key, sizeof key)},
                 {"data", s.session + 1, slice_of(key, sizeof key)}, {"data", 0, secret_slice(&right)}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fd = peer();
        a = (struct auth){0};
        assert_string_equal(prove(fd, &a, wrong[i].role, wrong[i].session, wrong[i].key), "bye");
        UNTIL(is_closed(fd));
        close(fd);
    }
    // a proof for one role is none for another
    fd = peer();
    a = (struct auth){0};
    assert_null(prove(fd, &a, "control", 0, secret_slice(&right)));
    say_hello(fd, &(struct hello){"data", 1, s.session, slice_of(s.key, 16), NULL});
    UNTIL(is_closed(fd));
    close(fd);
    // nor for another session: this one's owner proved its own
    fd = peer();
    a = (struct auth){0};
    assert_null(prove(fd, &a, "data", s.session, slice_of(key, sizeof key)));
    say_hello(fd, &(struct hello){"data", 1, s.session + 1, slice_of(s.key, 16), NULL});
    UNTIL(is_closed(fd));
    close(fd);
    // the handshake once more, instead of a hello
    fd = peer();
    a = (struct auth){0};
    assert_null(prove(fd, &a, "control", 0, secret_slice(&right)));
    say(fd, "answer");
    UNTIL(is_closed(fd));
    close(fd);
    assert_int_equal(seen.begins, 0);
    assert_int_equal(seen.hellos, 1);
    say(s.control, "clock");
    UNTIL(seen.messages == 1);
    close(s.control);
    UNTIL(seen.closed == 1);
}

// A collector without a secret says so to who has one.
static void secret_for_nobody(void **state) {
    (void)state;
    int fd = peer();
    struct auth a = {0};
    assert_string_equal(prove(fd, &a, "control", 0, secret_slice(&right)), "the collector asks for no proof of the secret");
    UNTIL(is_closed(fd));
    close(fd);
    fd = peer();
    say(fd, "auth");
    assert_true(hears(fd, "bye", "this collector has no secret: start it with --secret-file, or connect without one"));
    close(fd);
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
    assert_null(server_new(base, &(struct server_options){.address = "127.0.0.1", .port = server_port(server)}, &events, &why)); // in use
    assert_string_equal(why, strerror(EADDRINUSE));
    assert_null(server_new(base, &(struct server_options){.address = "localhost"}, &events, &why));
    assert_string_equal(why, "not an IP address");
    assert_null(server_new(base, &(struct server_options){.address = "192.0.2.1"}, &events, &why));
    assert_string_equal(why, strerror(EADDRNOTAVAIL));
    struct server *six = server_new(base, &(struct server_options){.address = "::1"}, &events, &why);
    if (six) { // where there is IPv6
        assert_true(server_port(six) > 0);
        server_free(six);
    }
    fail_alloc_at(0);
    struct server *none = server_new(base, &(struct server_options){.address = "127.0.0.1"}, &events, &why);
    fail_alloc_at(-1);
    assert_null(none);
    assert_string_equal(why, "out of memory");
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        UNIT(session),    UNIT(early_end),      UNIT(strangers), UNIT(refused_data), UNIT(in_pieces),
        UNIT(output_cap), UNIT(newcomer_caps), UNIT(connection_cap), UNIT(silence),   UNIT(goodbye),      UNIT(addresses),
        cmocka_unit_test_setup_teardown(secret, setup_secret, teardown), cmocka_unit_test_setup_teardown(no_secret, setup_secret, teardown),
        UNIT(secret_for_nobody), cmocka_unit_test_setup_teardown(begun_before_silent, setup_secret, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
