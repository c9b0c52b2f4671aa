// SPDX-License-Identifier: Apache-2.0
// A running collector, as the tool's commands reach it: --collector HOST:PORT, one connection,
// questions and answers. Every failure is told on stderr, in one line that says what to do.
#pragma once

#include <stdint.h>

#include "net/client.h"

enum { REACH_MS = 5000, REACH_HOST_BYTES = 256 };

#define REACH_DEFAULT "127.0.0.1:4711"

// Reads HOST:PORT, [IPV6]:PORT or PORT. EXIT_SUCCESS, or EXIT_USAGE and has told why.
int reach_address(const char *command, const char *text, char host[REACH_HOST_BYTES],
                  uint16_t *port);

enum { REACH_AT_BYTES = REACH_HOST_BYTES + 16 };

// HOST:PORT, as reach_address reads it. Returns out.
char *reach_at(const struct client_options *to, char out[REACH_AT_BYTES]);

// What the command line says of the collector, and how to get to it. Not to be moved once it is
// prepared.
struct reach {
    const char *collector; // HOST:PORT; NULL: REACH_DEFAULT
    const char *secret_file;
    bool tls; // with the system's authorities, when there is no tls_files.ca
    struct tls_files tls_files;
    const char *tls_name; // in the collector's certificate; NULL: its host
    // made by reach_prepare, until reach_close
    char host[REACH_HOST_BYTES];
    char name[REACH_HOST_BYTES]; // to.tls_name, when it is not the command line's
    struct secret secret;
    struct tls *context;
    struct client_options to; // for client_open
};

// getopt_long's values of the options that every such command takes; its own are letters.
enum {
    REACH_COLLECTOR = 1000,
    REACH_SECRET,
    REACH_TLS,
    REACH_TLS_CA,
    REACH_TLS_CERT,
    REACH_TLS_KEY,
    REACH_TLS_NAME
};

#define REACH_OPTIONS                                                                              \
    {"collector", required_argument, NULL, REACH_COLLECTOR},                                       \
        {"secret-file", required_argument, NULL, REACH_SECRET},                                    \
        {"tls", no_argument, NULL, REACH_TLS}, {"tls-ca", required_argument, NULL, REACH_TLS_CA},  \
        {"tls-cert", required_argument, NULL, REACH_TLS_CERT},                                     \
        {"tls-key", required_argument, NULL, REACH_TLS_KEY}, {                                     \
        "tls-name", required_argument, NULL, REACH_TLS_NAME                                        \
    }

#define REACH_HELP                                                                                 \
    "  --collector HOST:PORT   where the collector listens (default: " REACH_DEFAULT ")\n"         \
    "  --secret-file FILE      the secret that the collector was given too\n"                      \
    "  --tls                   through TLS; the collector's certificate is verified with the\n"    \
    "                          system's authorities\n"                                             \
    "  --tls-ca FILE           through TLS; it is verified with the authorities in FILE\n"         \
    "  --tls-cert FILE         a certificate of one's own, for a collector with --tls-ca,\n"       \
    "  --tls-key FILE          and its key\n"                                                      \
    "  --tls-name NAME         the name in the collector's certificate (default: the\n"            \
    "                          host of --collector)\n"

// Takes one of them. False when it is none.
bool reach_option(struct reach *r, int option, const char *value);
// Makes r->to: reads the address and the files. EXIT_SUCCESS, or another status and has told why.
// reach_close in either case, which wipes what was secret.
int reach_prepare(const char *command, struct reach *r);
// Prepares and connects. NULL with *status set to an exit status, and has told why. reach_close in
// either case, after client_close.
struct client *reach_open(const char *command, struct reach *r, int *status);
// Tells why client_open failed. EXIT_FAILURE.
int reach_fail(const char *command, const struct client_options *to, const struct client_error *e);
void reach_close(struct reach *r);
// Asks: sends the message that control_end accepted. The buffer is freed. EXIT_SUCCESS, or has told
// why not.
int reach_ask(const char *command, struct client *c, struct buffer *message);
// Waits for the next message of a type, passing others over; timeout_ms for each. NULL and has told
// why: also when the collector answers with an error.
struct control *reach_answer(const char *command, struct client *c, const char *type,
                             int timeout_ms);
// The same of either of two types.
struct control *reach_either(const char *command, struct client *c, const char *type,
                             const char *other, int timeout_ms);
