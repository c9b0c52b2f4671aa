// SPDX-License-Identifier: Apache-2.0
#include "net/auth.h"

#include "codec/control.h"
#include "unit.h"

static const uint8_t OURS[AUTH_NONCE_BYTES] = "the client's nonce, 32 bytes....",
                     THEIRS[AUTH_NONCE_BYTES] = "the collector's nonce, 32 bytes.";

static uint8_t digit(char c) {
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static struct slice from_hex(const char *hex, uint8_t *to) {
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        to[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
    }
    return slice_of(to, n);
}

// RFC 4231, test cases 1 to 4, 6 and 7 (5 is of a truncated one), without a label.
static void vectors(void **state) {
    (void)state;
    static const struct {
        const char *key, *data, *mac; // key NULL: 131 bytes of aa
    } cases[] = {
        {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265",
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd",
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {"0102030405060708090a0b0c0d0e0f10111213141516171819",
         "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd",
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {NULL,
         "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579204669727374",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {NULL,
         "5468697320697320612074657374207573696e672061206c6172676572207468616e20626c6f636b2d73697a65206b657920616e642061206c6172676572"
         "207468616e20626c6f636b2d73697a6520646174612e20546865206b6579206e6565647320746f20626520686173686564206265666f7265206265696e67"
         "20757365642062792074686520484d414320616c676f726974686d2e",
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t key[200], data[200], mac[32], got[32];
        from_hex(cases[i].mac, mac);
        memset(key, 0xaa, sizeof key);
        assert_true(auth_hmac(cases[i].key ? from_hex(cases[i].key, key) : slice_of(key, 131), NULL,
                              from_hex(cases[i].data, data), got));
        assert_memory_equal(got, mac, 32);
    }
    // a label and its zero stand before the bytes: the same as giving them with the bytes
    uint8_t with[32], without[32];
    assert_true(auth_hmac(slice_text("key"), "label", slice_text("bytes"), with));
    assert_true(auth_hmac(slice_text("key"), NULL, slice_of("label\0bytes", 11), without));
    assert_memory_equal(with, without, 32);
    assert_false(auth_hmac(slice_text("key"), "a label that is longer than labels are",
                           slice_text(""), with));
    static const uint8_t many[4 * AUTH_FRAME_BYTES + 32];
    assert_false(auth_hmac(slice_text("key"), "label", slice_of(many, sizeof many), with));
}

// -- both sides -----------------------------------------------------------------------------------

// A handshake on its way: frame i is the bytes from at[i] to at[i + 1].
struct pair {
    struct auth client, collector;
    struct buffer wire;
    size_t at[5];
    const char *why;
};

// The certificates that the client sees and the collector has; NULL: without TLS.
static const uint8_t *seen, *own;

static void with_certificate(struct auth *a, const uint8_t *certificate) {
    a->tls = certificate != NULL;
    if (certificate) {
        memcpy(a->certificate, certificate, AUTH_CERTIFICATE_BYTES);
    }
}

static struct slice frame(const struct pair *p, int i) {
    return slice_of(p->wire.data + p->at[i], p->at[i + 1] - p->at[i]);
}

// Runs a handshake, with byte `flip` of the wire changed by xor once it was sent; -1: none. Stops
// at the first objection; returns how many frames were taken.
static int run(struct pair *p, const char *role, int64_t session, struct slice mine,
               struct slice yours, long flip) {
    memset(p, 0, sizeof *p);
    with_certificate(&p->client, seen);
    with_certificate(&p->collector, own);
    p->wire = buffer_make(1 << 16);
    for (int i = 0; i < 5; i++) {
        struct slice last = i > 0 ? frame(p, i - 1) : slice_text("");
        p->why = i == 0   ? auth_begin(&p->client, role, session, OURS, &p->wire)
                 : i == 1 ? auth_challenge(&p->collector, last, THEIRS, &p->wire)
                 : i == 2 ? auth_answer(&p->client, mine, last, &p->wire)
                 : i == 3 ? auth_check(&p->collector, yours, last, &p->wire)
                          : auth_confirm(&p->client, mine, last);
        if (p->why) {
            return i;
        }
        if (i < 4) {
            p->at[i + 1] = p->wire.len;
            if (flip >= (long)p->at[i] && flip < (long)p->at[i + 1]) {
                p->wire.data[flip] ^= 0x01;
            }
        }
    }
    return 5;
}

static void agree(void **state) {
    (void)state;
    struct pair p, other;
    uint8_t a[32], b[32];
    struct slice secret = slice_text("0123456789abcdef");
    assert_int_equal(run(&p, "control", 0, secret, secret, -1), 5);
    assert_string_equal(p.collector.role, "control");
    assert_int_equal(p.collector.session, 0);
    assert_true(auth_session_key(&p.client, secret, a) &&
                auth_session_key(&p.collector, secret, b));
    assert_memory_equal(a, b, 32);
    // the data connection proves the session's key, and only it
    assert_int_equal(run(&other, "data", 77, slice_of(a, 32), slice_of(b, 32), -1), 5);
    assert_string_equal(other.collector.role, "data");
    assert_int_equal(other.collector.session, 77);
    buffer_free(&other.wire);
    assert_int_equal(run(&other, "data", 77, secret, slice_of(b, 32), -1), 3);
    assert_string_equal(other.why, "wrong secret");
    // of a handshake that failed there is none
    assert_false(auth_session_key(&other.client, secret, b));
    buffer_free(&other.wire);
    buffer_free(&p.wire);
}

static void wrong_secret(void **state) {
    (void)state;
    struct pair p;
    struct slice right = slice_text("0123456789abcdef");
    static const char *const wrong[] = {"0123456789abcdee", "0123456789abcde", "0123456789abcdef0",
                                        "1123456789abcdef", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(run(&p, "control", 0, slice_text(wrong[i]), right, -1), 3);
        assert_string_equal(p.why, "wrong secret");
        assert_int_equal(p.wire.len, p.at[3]); // and nothing is said of the right one
        buffer_free(&p.wire);
    }
}

// Through TLS both must mean the same certificate, and who sits in between cannot say for the
// client that it saw the right one.
static void certificates(void **state) {
    (void)state;
    static const uint8_t ours[AUTH_CERTIFICATE_BYTES] = "the collector's",
                         theirs[AUTH_CERTIFICATE_BYTES] = "somebody's in between";
    static const struct {
        const uint8_t *seen, *own;
        bool good;
    } cases[] = {
        {ours, ours, true}, {theirs, ours, false}, {NULL, ours, false}, {ours, NULL, false}};
    struct slice secret = slice_text("0123456789abcdef");
    struct pair p;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen = cases[i].seen;
        own = cases[i].own;
        assert_int_equal(run(&p, "data", 7, secret, secret, -1), cases[i].good ? 5 : 1);
        assert_true(cases[i].good || strstr(p.why, "somebody is in between"));
        buffer_free(&p.wire);
    }
    // the certificate replaced on the way: then the proof is of another text
    struct auth client = {0}, collector = {0};
    struct buffer out = buffer_make(1 << 16), back = buffer_make(1 << 16),
                  answer = buffer_make(1 << 16);
    with_certificate(&client, theirs);
    with_certificate(&collector, ours);
    assert_null(auth_begin(&client, "control", 0, OURS, &out));
    uint8_t *at = memmem(out.data, out.len, theirs, sizeof theirs);
    assert_non_null(at);
    memcpy(at, ours, sizeof ours);
    assert_null(auth_challenge(&collector, slice_of(out.data, out.len), THEIRS, &back));
    assert_null(auth_answer(&client, secret, slice_of(back.data, back.len), &answer));
    assert_string_equal(auth_check(&collector, secret, slice_of(answer.data, answer.len), &back),
                        "wrong secret");
    buffer_free(&out);
    buffer_free(&back);
    buffer_free(&answer);
    seen = own = NULL;
}

// Whichever byte of whichever frame is changed on the way, one of the two objects, and the
// collector never before it was proven to.
static void tampered(void **state) {
    (void)state;
    struct pair p;
    struct slice secret = slice_text("0123456789abcdef");
    assert_int_equal(run(&p, "data", 300, secret, secret, -1), 5);
    size_t len = p.wire.len, proven = p.at[3];
    buffer_free(&p.wire);
    for (size_t i = 0; i < len; i++) {
        int taken = run(&p, "data", 300, secret, secret, (long)i);
        assert_true(taken < 5);
        assert_true(taken <= 3 || i >= proven);
        assert_non_null(p.why);
        buffer_free(&p.wire);
    }
}

// What was recorded of one handshake is of no use in the next, whose nonces are others.
static void replayed(void **state) {
    (void)state;
    struct pair old;
    struct slice secret = slice_text("0123456789abcdef");
    assert_int_equal(run(&old, "control", 0, secret, secret, -1), 5);
    uint8_t fresh[AUTH_NONCE_BYTES] = "another nonce";
    struct buffer out = buffer_make(1 << 16);
    struct auth collector = {0}, client = {0};
    assert_null(auth_challenge(&collector, frame(&old, 0), fresh, &out)); // anybody may ask
    assert_string_equal(auth_check(&collector, secret, frame(&old, 2), &out), "wrong secret");
    buffer_reset(&out);
    assert_null(auth_begin(&client, "control", 0, fresh, &out));
    assert_null(auth_answer(&client, secret, frame(&old, 1), &out));
    assert_string_equal(auth_confirm(&client, secret, frame(&old, 3)),
                        "the collector does not know the secret");
    buffer_free(&out);
    buffer_free(&old.wire);
}

// Who sends back what it is sent proves nothing.
static void reflected(void **state) {
    (void)state;
    struct slice secret = slice_text("0123456789abcdef");
    struct buffer begun = buffer_make(1 << 16), answer = buffer_make(1 << 16),
                  back = buffer_make(1 << 16);
    struct auth client = {0}, collector = {0};
    assert_null(auth_begin(&client, "control", 0, OURS, &begun));
    struct control_writer w = control_begin(&back, "challenge", 1); // the client's own nonce
    control_bytes(&w, "nonce", slice_of(OURS, sizeof OURS));
    assert_true(control_end(&w));
    assert_null(auth_answer(&client, secret, slice_of(back.data, back.len), &answer));
    struct control *c =
        control_decode(slice_of(answer.data + CONTROL_HEADER, answer.len - CONTROL_HEADER));
    struct slice proof;
    assert_true(c && control_get_bytes(control_root(c), "proof", &proof));
    buffer_reset(&back);
    w = control_begin(&back, "proven", 1); // and its own proof
    control_bytes(&w, "proof", proof);
    assert_true(control_end(&w));
    assert_string_equal(auth_confirm(&client, secret, slice_of(back.data, back.len)),
                        "the collector does not know the secret");
    control_free(c);
    // likewise towards the collector: its challenge is no answer
    buffer_reset(&back);
    assert_null(auth_challenge(&collector, slice_of(begun.data, begun.len), THEIRS, &back));
    assert_string_equal(auth_check(&collector, secret, slice_of(back.data, back.len), &answer),
                        "damaged authentication");
    buffer_free(&begun);
    buffer_free(&answer);
    buffer_free(&back);
}

// Frames in another order, twice, cut, too long, of other types and shapes.
static void damaged(void **state) {
    (void)state;
    struct pair p;
    struct slice secret = slice_text("0123456789abcdef");
    struct buffer out = buffer_make(1 << 16);
    assert_int_equal(run(&p, "control", 0, secret, secret, -1), 5);
    for (int i = 0; i < 4; i++) { // it is over: nothing more is taken
        assert_non_null(auth_challenge(&p.collector, frame(&p, i), THEIRS, &out));
        assert_non_null(auth_check(&p.collector, secret, frame(&p, i), &out));
        assert_non_null(auth_answer(&p.client, secret, frame(&p, i), &out));
        assert_non_null(auth_confirm(&p.client, secret, frame(&p, i)));
    }
    for (int i = 1; i < 4; i++) {
        struct auth a = {0};
        assert_string_equal(auth_challenge(&a, frame(&p, i), THEIRS, &out), "no authentication");
        assert_non_null(auth_check(&a, secret, frame(&p, i), &out)); // before its time
    }
    for (size_t cut = 0; cut < frame(&p, 0).len; cut++) {
        struct auth a = {0};
        assert_non_null(auth_challenge(&a, slice_of(p.wire.data, cut), THEIRS, &out));
    }
    static const struct {
        int64_t protocol;
        const char *role;
        size_t nonce;
        const char *why;
    } shapes[] = {{1, "control", 32, NULL},
                  {1, "da~ta", 32, "damaged authentication"}, // ~ stands for a zero
                  {1, "~", 32, "damaged authentication"},
                  {2, "control", 32, "another version of the protocol"},
                  {1, "", 32, "damaged authentication"},
                  {1, "fifteen letters", 32, NULL},
                  {1, "sixteen letters.", 32, "damaged authentication"},
                  {1, "control", 31, "damaged authentication"},
                  {1, "control", 33, "damaged authentication"},
                  {1, "control", 600, "no authentication"}};
    static const uint8_t many[1000];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct auth a = {0};
        struct buffer in = buffer_make(1 << 16);
        struct control_writer w = control_begin(&in, "auth", 3);
        control_int(&w, "protocol", shapes[i].protocol);
        control_text(&w, "role", slice_text(shapes[i].role));
        control_bytes(&w, "nonce", slice_of(many, shapes[i].nonce));
        assert_true(control_end(&w));
        uint8_t *tilde = memchr(in.data, '~', in.len);
        if (tilde) {
            *tilde = 0;
        }
        const char *why = auth_challenge(&a, slice_of(in.data, in.len), THEIRS, &out);
        if (shapes[i].why) {
            assert_string_equal(why, shapes[i].why);
        } else {
            assert_null(why);
        }
        buffer_free(&in);
    }
    assert_string_equal(auth_begin(&(struct auth){0}, "sixteen letters.", 0, OURS, &out),
                        "no such role");
    struct buffer none = buffer_make(10); // no room for what is to be sent
    struct auth a = {0};
    assert_string_equal(auth_begin(&a, "control", 0, OURS, &none), "out of memory");
    assert_string_equal(auth_challenge(&a, frame(&p, 0), THEIRS, &none), "out of memory");
    buffer_free(&none);
    buffer_free(&out);
    buffer_free(&p.wire);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors),      cmocka_unit_test(agree),
                                       cmocka_unit_test(wrong_secret), cmocka_unit_test(tampered),
                                       cmocka_unit_test(replayed),     cmocka_unit_test(reflected),
                                       cmocka_unit_test(certificates), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
