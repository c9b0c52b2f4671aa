// SPDX-License-Identifier: Apache-2.0
#include "net/server.h"

#include "base/limits.h"
#include "net/auth.h"
#include "server_fixture.h"

static const struct secret right = {"0123456789abcdef", 16};

static int setup_secret(void **state) {
    const char *why = NULL;
    setup(state);
    server_free(server);
    server = server_new(base, &(struct server_options){.address = "127.0.0.1", .secret = &right},
                        &events, &why);
    assert_non_null(server);
    return 0;
}

// Goes through the handshake as a client. NULL, or what was wrong; "bye" when the collector said
// so.
static const char *prove(int fd, struct auth *a, const char *role, int64_t session_of,
                         struct slice key) {
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
        why = frame.len == 0                            ? "closed"
              : memmem(frame.data, frame.len, "bye", 3) ? "bye"
                                                        : auth_confirm(a, key, frame);
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
    say_hello_and(s.data, &(struct hello){"data", 1, s.session, slice_of(s.key, 16), NULL, 0},
                  "first");
    say(s.control, "tiers");
    UNTIL(seen.data.len == 5);
    // a new trace port of the same shim
    int again = peer();
    d = (struct auth){0};
    assert_null(prove(again, &d, "data", s.session, slice_of(key, sizeof key)));
    say_hello(again, &(struct hello){"data", 1, s.session, slice_of(s.key, 16), NULL, 0});
    UNTIL(seen.begins == 2 && seen.ends == 1);
    close(s.data);
    close(again);
    close(s.control);
    UNTIL(seen.closed == 1);
}

// A flood of those who say nothing, from its own address, does not crowd out who has begun to prove
// it.
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
    say_hello(fd, &(struct hello){"control", 1, 0, slice_text(""), "n@h", 0});
    assert_true(hears(
        fd, "bye",
        "this collector demands its secret: start with --secret-file (start_trace: {secret_file, File})"));
    UNTIL(is_closed(fd));
    close(fd);
    fd = peer();
    say_hello(fd, &(struct hello){"data", 1, s.session, slice_of(s.key, 16), NULL, 0});
    UNTIL(is_closed(fd) || hear_frame(fd).len == 0);
    close(fd);
    // wrong secrets; the right one where the session's key is wanted, and the other way round
    const struct {
        const char *role;
        int64_t session;
        struct slice key;
    } wrong[] = {{"control", 0, slice_text("0123456789abcdee")},
                 {"tool", 0, slice_text("0123456789abcdee")},
                 {"data", s.session, secret_slice(&right)},
                 {"control", 0, slice_of(key, sizeof key)},
                 {"data", s.session + 1, slice_of(key, sizeof key)},
                 {"data", 0, secret_slice(&right)}};
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
    say_hello(fd, &(struct hello){"data", 1, s.session, slice_of(s.key, 16), NULL, 0});
    UNTIL(is_closed(fd));
    close(fd);
    fd = peer();
    a = (struct auth){0};
    assert_null(prove(fd, &a, "tool", 0, secret_slice(&right)));
    say_hello(fd, &(struct hello){"control", 1, 0, slice_text(""), "n@h", 0});
    UNTIL(is_closed(fd));
    close(fd);
    // nor for another session: this one's owner proved its own
    fd = peer();
    a = (struct auth){0};
    assert_null(prove(fd, &a, "data", s.session, slice_of(key, sizeof key)));
    say_hello(fd, &(struct hello){"data", 1, s.session + 1, slice_of(s.key, 16), NULL, 0});
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
    assert_string_equal(prove(fd, &a, "control", 0, secret_slice(&right)),
                        "the collector asks for no proof of the secret");
    UNTIL(is_closed(fd));
    close(fd);
    fd = peer();
    say(fd, "auth");
    assert_true(
        hears(fd, "bye",
              "this collector has no secret: start it with --secret-file, or connect without one"));
    close(fd);
}

#define UNIT(f, setup) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        UNIT(secret, setup_secret),
        UNIT(no_secret, setup_secret),
        UNIT(begun_before_silent, setup_secret),
        UNIT(secret_for_nobody, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
