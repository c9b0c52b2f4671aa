// SPDX-License-Identifier: Apache-2.0
// The handshake in which both ends of a connection prove that they know the same secret, before
// anything else is said. Pure: frames in, frames out (codec/control.h has their form); nonces are
// arguments. shim/src/link/kprof_auth.erl is another client.
//
//   client -> collector    auth        protocol, role "control", "data" or "tool", nonce (32
//                                      bytes); of role "data" also session; through TLS also
//                                      certificate: SHA-256 of the one that the client sees
//   collector -> client    challenge   nonce (32 bytes)
//   client -> collector    answer      proof = HMAC-SHA-256(key, "kprof 1 client\0" and all frames
//                                      so far)
//   collector -> client    proven      proof = HMAC-SHA-256(key, "kprof 1 collector\0" and all
//                                      frames so far)
//
// Frames enter as they were sent, with their lengths: whoever changes, drops or adds a byte changes
// the proofs. Both nonces are fresh, so that nothing recorded is of use; the two labels differ, so
// that a proof sent back proves nothing. The client proves first: a stranger gets nothing from a
// collector by which to guess its secret at home.
//
// The key is the secret, but of role "data" the session's own: HMAC-SHA-256(secret, "kprof 1
// session\0" and the four frames of the control connection). It never travels, so that a data
// connection belongs to one session and nobody can join another one's.
//
// What this is not: encryption. Whoever can change what travels can take over a connection after
// the handshake; TLS prevents that. There the two are bound together: somebody in between, with a
// certificate that the client trusts for a reason that is none, is found out by the collector, as
// the client sees another certificate than its own. (The end point of RFC 5929, as
// SCRAM-SHA-256-PLUS has it; the exporter of RFC 9266 cannot be had from OTP before 27.)
#pragma once

#include "base/buffer.h"
#include "base/bytes.h"

enum {
    AUTH_NONCE_BYTES = 32,
    AUTH_PROOF_BYTES = 32,       // of HMAC-SHA-256
    AUTH_KEY_BYTES = 32,         // of a session
    AUTH_CERTIFICATE_BYTES = 32, // SHA-256
    AUTH_FRAME_BYTES = 512       // at most, of each of the four
};

// One handshake, of either side. Begins as zeros, but for the certificate where there is one. Has
// no memory of its own.
struct auth {
    uint8_t frames[4 * AUTH_FRAME_BYTES]; // sent and received so far
    size_t len;
    int count;       // of them; 4: both sides have proven themselves
    char role[16];   // set from the first frame on
    int64_t session; // of role "data", else 0
    bool tls;        // there is a certificate: the collector's
    uint8_t certificate[AUTH_CERTIFICATE_BYTES];
};

// HMAC-SHA-256 of label, with its terminating zero (NULL: none), and bytes. False when the library
// fails.
bool auth_hmac(struct slice key, const char *label, struct slice bytes,
               uint8_t out[AUTH_PROOF_BYTES]);

// The collector's side: takes the first frame and appends the challenge to out. NULL, or why it is
// refused (static text). The frame must be the whole one that control_frame found.
const char *auth_challenge(struct auth *a, struct slice frame,
                           const uint8_t nonce[AUTH_NONCE_BYTES], struct buffer *out);
// Takes the answer, checks it in constant time and appends the collector's own proof. Likewise.
const char *auth_check(struct auth *a, struct slice key, struct slice frame, struct buffer *out);

// The client's side: appends the first frame. Session is 0 but of role "data".
const char *auth_begin(struct auth *a, const char *role, int64_t session,
                       const uint8_t nonce[AUTH_NONCE_BYTES], struct buffer *out);
// Takes the challenge, appends the answer.
const char *auth_answer(struct auth *a, struct slice key, struct slice frame, struct buffer *out);
// Takes the collector's proof.
const char *auth_confirm(struct auth *a, struct slice key, struct slice frame);

// The key of the session that a whole handshake of role "control" opened. False when the library
// fails.
bool auth_session_key(const struct auth *a, struct slice secret, uint8_t key[AUTH_KEY_BYTES]);
