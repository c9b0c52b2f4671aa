// SPDX-License-Identifier: Apache-2.0
#include "net/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "codec/control.h"

static const char CLIENT[] = "kprof 1 client", COLLECTOR[] = "kprof 1 collector",
                  SESSION[] = "kprof 1 session";
static const char NO_MEMORY[] = "out of memory";

bool auth_hmac(struct slice key, const char *label, struct slice bytes,
               uint8_t out[AUTH_PROOF_BYTES]) {
    uint8_t text[32 + sizeof((struct auth *)0)->frames];
    size_t label_len = label ? strlen(label) + 1 : 0;
    unsigned len = 0;
    if (label_len > 32 || bytes.len > sizeof text - label_len) {
        return false;
    }
    if (label) {
        memcpy(text, label, label_len);
    }
    memcpy(text + label_len, bytes.data, bytes.len);
    return HMAC(EVP_sha256(), key.data, (int)key.len, text, label_len + bytes.len, out, &len) &&
           len == AUTH_PROOF_BYTES;
}

static struct slice so_far(const struct auth *a) {
    return slice_of(a->frames, a->len);
}

static bool keep(struct auth *a, struct slice frame) {
    if (a->count >= 4 || frame.len > AUTH_FRAME_BYTES) {
        return false;
    }
    memcpy(a->frames + a->len, frame.data, frame.len);
    a->len += frame.len;
    a->count++;
    return true;
}

// Ends a message that was begun at the end of out, and keeps it.
static const char *send_frame(struct auth *a, struct buffer *out, struct control_writer *w) {
    return control_end(w) && keep(a, slice_of(out->data + w->start, out->len - w->start))
               ? NULL
               : NO_MEMORY;
}

// Decodes the frame that must come next, of this type. NULL when it is another one; else to be
// freed.
static struct control *expect(const struct auth *a, int count, struct slice frame,
                              const char *type) {
    struct slice payload, found = {0};
    if (a->count != count || frame.len == 0 || frame.len > AUTH_FRAME_BYTES ||
        control_frame(frame, &payload) != (long)frame.len) {
        return NULL;
    }
    struct control *c = control_decode(payload);
    if (c && control_get_text(control_root(c), FIELD_TYPE, &found) && slice_is(found, type)) {
        return c;
    }
    control_free(c);
    return NULL;
}

static const char *send_proof(struct auth *a, struct slice key, const char *type, const char *label,
                              struct buffer *out) {
    uint8_t proof[AUTH_PROOF_BYTES];
    if (!auth_hmac(key, label, so_far(a), proof)) {
        return NO_MEMORY;
    }
    struct control_writer w = control_begin(out, type, 1);
    control_bytes(&w, FIELD_PROOF, slice_of(proof, sizeof proof));
    return send_frame(a, out, &w);
}

// Whether a frame carries the other side's proof; keeps it.
static bool proves(struct auth *a, struct slice key, struct slice frame, struct control_map message,
                   const char *label) {
    uint8_t wanted[AUTH_PROOF_BYTES];
    struct slice proof = {0};
    bool same = auth_hmac(key, label, so_far(a), wanted) &&
                control_get_bytes(message, FIELD_PROOF, &proof) && proof.len == AUTH_PROOF_BYTES &&
                CRYPTO_memcmp(wanted, proof.data, AUTH_PROOF_BYTES) == 0;
    OPENSSL_cleanse(wanted, sizeof wanted);
    return same && keep(a, frame);
}

// -- the collector --------------------------------------------------------------------------------

// Whether the client sees what it should. It is no secret, and proven together with the frame that
// it came in.
static bool same_certificate(const struct auth *a, struct slice theirs) {
    if (!a->tls) {
        return theirs.len == 0;
    }
    return theirs.len == AUTH_CERTIFICATE_BYTES &&
           memcmp(theirs.data, a->certificate, AUTH_CERTIFICATE_BYTES) == 0;
}

const char *auth_challenge(struct auth *a, struct slice frame,
                           const uint8_t nonce[AUTH_NONCE_BYTES], struct buffer *out) {
    struct slice role = {0}, theirs = {0}, certificate = {0};
    int64_t protocol = 0;
    struct control *c = expect(a, 0, frame, CONTROL_AUTH);
    if (!c) {
        return "no authentication";
    }
    struct control_map m = control_root(c);
    control_get_int(m, FIELD_PROTOCOL, &protocol);
    control_get_int(m, FIELD_SESSION, &a->session);
    control_get_text(m, FIELD_ROLE, &role);
    control_get_bytes(m, FIELD_NONCE, &theirs);
    control_get_bytes(m, FIELD_CERTIFICATE, &certificate);
    const char *why = NULL;
    if (protocol != CONTROL_PROTOCOL) {
        why = "another version of the protocol";
    } else if (theirs.len != AUTH_NONCE_BYTES || role.len == 0 || role.len >= sizeof a->role ||
               memchr(role.data, 0, role.len)) { // a role is text with an end
        why = "damaged authentication";
    } else if (!same_certificate(a, certificate)) {
        why = "somebody is in between: the client sees another certificate than this collector's "
              "(TLS may end in a proxy)";
    } else {
        memcpy(a->role, role.data, role.len);
    }
    control_free(c);
    if (why || !keep(a, frame)) {
        return why ? why : NO_MEMORY;
    }
    struct control_writer w = control_begin(out, CONTROL_CHALLENGE, 1);
    control_bytes(&w, FIELD_NONCE, slice_of(nonce, AUTH_NONCE_BYTES));
    return send_frame(a, out, &w);
}

const char *auth_check(struct auth *a, struct slice key, struct slice frame, struct buffer *out) {
    struct control *c = expect(a, 2, frame, CONTROL_ANSWER);
    if (!c) {
        return "damaged authentication";
    }
    bool good = proves(a, key, frame, control_root(c), CLIENT);
    control_free(c);
    return good ? send_proof(a, key, CONTROL_PROVEN, COLLECTOR, out) : "wrong secret";
}

// -- the client -----------------------------------------------------------------------------------

const char *auth_begin(struct auth *a, const char *role, int64_t session,
                       const uint8_t nonce[AUTH_NONCE_BYTES], struct buffer *out) {
    if (strlen(role) >= sizeof a->role) {
        return "no such role";
    }
    strcpy(a->role, role);
    a->session = session;
    struct control_writer w = control_begin(out, CONTROL_AUTH, 3 + (session != 0) + a->tls);
    control_int(&w, FIELD_PROTOCOL, CONTROL_PROTOCOL);
    control_text(&w, FIELD_ROLE, slice_text(role));
    control_bytes(&w, FIELD_NONCE, slice_of(nonce, AUTH_NONCE_BYTES));
    if (session) {
        control_int(&w, FIELD_SESSION, session);
    }
    if (a->tls) {
        control_bytes(&w, FIELD_CERTIFICATE, slice_of(a->certificate, AUTH_CERTIFICATE_BYTES));
    }
    return send_frame(a, out, &w);
}

const char *auth_answer(struct auth *a, struct slice key, struct slice frame, struct buffer *out) {
    struct slice nonce = {0};
    struct control *c = expect(a, 1, frame, CONTROL_CHALLENGE);
    bool good = c && control_get_bytes(control_root(c), FIELD_NONCE, &nonce) &&
                nonce.len == AUTH_NONCE_BYTES && keep(a, frame);
    control_free(c);
    return good ? send_proof(a, key, CONTROL_ANSWER, CLIENT, out)
                : "the collector asks for no proof of the secret";
}

const char *auth_confirm(struct auth *a, struct slice key, struct slice frame) {
    struct control *c = expect(a, 3, frame, CONTROL_PROVEN);
    bool good = c && proves(a, key, frame, control_root(c), COLLECTOR);
    control_free(c);
    return good ? NULL : "the collector does not know the secret";
}

bool auth_session_key(const struct auth *a, struct slice secret, uint8_t key[AUTH_KEY_BYTES]) {
    return a->count == 4 && auth_hmac(secret, SESSION, so_far(a), key);
}
