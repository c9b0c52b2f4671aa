// SPDX-License-Identifier: Apache-2.0
// Calls in a node over a socket pair, whose other end is the test: answers as nodes send them, and
// such as none would.
#include "dist/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

enum { TIMEOUT_MS = 300, ROOM = 4096 };

static int far; // the test's end
static ei_cnode self;

static struct channel open_channel(void) {
    int fds[2];
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(ei_connect_xinit(&self, "host", "kprof", "kprof@host", &loopback, "cookie", 7),
                     0);
    far = fds[1];
    return channel_make(fds[0], &self, "node@host");
}

static void end(struct channel *c) {
    channel_close(c);
    close(far);
}

// A packet as a node sends it: its length, then pass-through, control and message. The message is
// {rex, Result}.
static size_t packet(uint8_t *out, const erlang_pid *to, const char *result, size_t len) {
    ei_x_buff x;
    assert_int_equal(ei_x_new(&x), 0);
    ei_x_append_buf(&x, "\0\0\0\0p", 5);
    ei_x_encode_version(&x);
    ei_x_encode_tuple_header(&x, 3);
    ei_x_encode_long(&x, 2);
    ei_x_encode_atom(&x, "");
    ei_x_encode_pid(&x, to);
    ei_x_encode_version(&x);
    ei_x_encode_tuple_header(&x, 2);
    ei_x_encode_atom(&x, "rex");
    ei_x_append_buf(&x, result, (int)len);
    uint32_t length = __builtin_bswap32((uint32_t)x.index - 4);
    memcpy(x.buff, &length, 4);
    memcpy(out, x.buff, (size_t)x.index);
    size_t n = (size_t)x.index;
    ei_x_free(&x);
    return n;
}

// The pid of the next call is known beforehand: they are numbered.
static erlang_pid next_pid(void) {
    ei_cnode copy = self;
    erlang_pid pid;
    assert_int_equal(ei_make_pid(&copy, &pid), 0);
    return pid;
}

static bool call(struct channel *c, struct slice *result, struct dist_error *e) {
    ei_x_buff arguments;
    assert_int_equal(ei_x_new(&arguments), 0);
    ei_x_encode_empty_list(&arguments);
    bool good = channel_call(c, "m", "f", &arguments, TIMEOUT_MS, result, e);
    ei_x_free(&arguments);
    return good;
}

static void answers(const void *bytes, size_t n) {
    assert_int_equal(write(far, bytes, n), n);
}

static void returns(void **state) {
    struct channel c = open_channel();
    struct slice result;
    struct dist_error e;
    uint8_t bytes[ROOM], sent[ROOM];
    (void)state;
    for (int i = 0; i < 3; i++) {
        erlang_pid stranger = next_pid(), pid = next_pid();
        stranger.num += 17;
        answers(bytes, packet(bytes, &stranger, "a\1", 2)); // for somebody else
        answers("\0\0\0\0", 4);                             // a tick
        answers("\0\0\0\3abc", 7);                          // no message
        answers(bytes, packet(bytes, &pid, "a\52", 2));
        assert_true(call(&c, &result, &e));
        assert_int_equal(result.len, 2);
        assert_memory_equal(result.data, "a\52", 2);
        // what went out: a packet of its stated length, with the call, and the answer to the tick
        ssize_t n = read(far, sent, sizeof sent);
        assert_true(n > 8);
        uint32_t length;
        memcpy(&length, sent, 4);
        assert_int_equal(__builtin_bswap32(length) + 4 + 4, n);
        assert_memory_equal(sent + n - 4, "\0\0\0\0", 4);
        assert_int_equal(sent[4], 'p');
    }
    end(&c);
}

static void fails(void **state) {
    static const char badrpc[] = "h\2w\6badrpch\2w\4EXITh\2w\5undefl\0\0\0\1w\6secretj";
    struct channel c = open_channel();
    struct slice result;
    struct dist_error e;
    uint8_t bytes[ROOM];
    erlang_pid pid = next_pid();
    (void)state;
    answers(bytes, packet(bytes, &pid, badrpc, sizeof badrpc - 1));
    assert_false(call(&c, &result, &e));
    assert_int_equal(e.status, DIST_OTHER);
    assert_string_equal(e.text, "node@host: m:f failed: undef"); // the stack is not told
    // the connection stands
    pid = next_pid();
    answers(bytes, packet(bytes, &pid, "j", 1));
    assert_true(call(&c, &result, &e));
    end(&c);
}

static void is_lost(bool closes) {
    struct slice result;
    struct dist_error e;
    struct channel c = open_channel();
    if (closes) {
        close(far);
    }
    assert_false(call(&c, &result, &e));
    assert_int_equal(e.status, DIST_DOWN);
    assert_int_equal(c.fd, -1);
    assert_false(call(&c, &result, &e)); // and stays so
    assert_int_equal(e.status, DIST_DOWN);
    end(&c);
}

static void silent(void **state) {
    (void)state;
    is_lost(false);
}

static void closed(void **state) {
    (void)state;
    is_lost(true);
}

static void too_long(void **state) {
    struct channel c = open_channel();
    struct slice result;
    struct dist_error e;
    (void)state;
    answers("\377\377\377\377p", 5);
    assert_false(call(&c, &result, &e));
    assert_int_equal(e.status, DIST_DOWN);
    assert_string_equal(e.text, "node@host is gone (its message is too long)");
    end(&c);
}

// An answer cut anywhere, and with any byte of it changed, is passed over, or taken with a result
// within the packet: the walk says so, and the sanitizers.
static void damaged(void **state) {
    static const char good[] = "l\0\0\0\2w\2okm\0\0\0\3abcj";
    uint8_t whole[ROOM], bytes[ROOM];
    (void)state;
    struct channel c = open_channel();
    for (size_t at = 4; at < 60; at++) {
        for (int kind = 0; kind < 3; kind++) {
            struct slice result;
            struct dist_error e;
            erlang_pid pid = next_pid();
            size_t n = packet(whole, &pid, good, sizeof good - 1);
            memcpy(bytes, whole, n);
            if (at >= n) {
                continue;
            }
            if (kind < 2) {
                bytes[at] = kind == 0 ? 0xff : (uint8_t)(bytes[at] + 1);
                answers(bytes, n);
            } else {
                uint32_t length = __builtin_bswap32((uint32_t)(at - 4));
                memcpy(bytes, &length, 4);
                answers(bytes, at);
            }
            answers(whole, n);
            if (call(&c, &result, &e)) {
                assert_true(result.data >= c.in.data &&
                            result.data + result.len <= c.in.data + c.in.len);
            } else {
                // a changed badrpc at most: the connection stands
                assert_int_equal(e.status, DIST_OTHER);
            }
        }
    }
    end(&c);
}

static void serves(void **state) {
    struct channel c = open_channel();
    uint8_t tick[8];
    (void)state;
    assert_true(channel_serve(&c));
    answers("\0\0\0\0\0\0\0\0", 8);
    answers("\0\0\0\2pq", 6);
    assert_true(channel_serve(&c));
    assert_int_equal(read(far, tick, sizeof tick), 8);
    assert_memory_equal(tick, "\0\0\0\0\0\0\0\0", 8);
    close(far);
    assert_false(channel_serve(&c));
    assert_int_equal(c.fd, -1);
    channel_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(returns),  cmocka_unit_test(fails),
                                       cmocka_unit_test(silent),   cmocka_unit_test(closed),
                                       cmocka_unit_test(too_long), cmocka_unit_test(damaged),
                                       cmocka_unit_test(serves)};
    ei_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
