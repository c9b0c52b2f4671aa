// SPDX-License-Identifier: Apache-2.0
#include "tool/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/command.h"

int reach_address(const char *command, const char *text, char host[REACH_HOST_BYTES],
                  uint16_t *port) {
    const char *colon = strrchr(text, ':');
    const char *number = colon ? colon + 1 : text;
    const char *start = text;
    size_t len = colon ? (size_t)(colon - text) : 0;
    int64_t n;
    if (len >= 2 && start[0] == '[' && start[len - 1] == ']') {
        start++;
        len -= 2;
    }
    if (!command_number(number, 65535, &n) || len >= REACH_HOST_BYTES || (colon && len == 0)) {
        return command_fail(command, EXIT_USAGE,
                            "--collector %s: want HOST:PORT, as in " REACH_DEFAULT, text);
    }
    snprintf(host, REACH_HOST_BYTES, "%.*s", colon ? (int)len : 9, colon ? start : "127.0.0.1");
    *port = (uint16_t)n;
    return EXIT_SUCCESS;
}

char *reach_at(const struct client_options *to, char out[REACH_AT_BYTES]) {
    bool ipv6 = strchr(to->host, ':') != NULL;
    snprintf(out, REACH_AT_BYTES, "%s%s%s:%u", ipv6 ? "[" : "", to->host, ipv6 ? "]" : "",
             to->port);
    return out;
}

bool reach_option(struct reach *r, int option, const char *value) {
    switch (option) {
    case REACH_COLLECTOR:
        r->collector = value;
        return true;
    case REACH_SECRET:
        r->secret_file = value;
        return true;
    case REACH_TLS_CA:
        r->tls_files.ca = value;
        r->tls = true;
        return true;
    case REACH_TLS:
        r->tls = true;
        return true;
    case REACH_TLS_CERT:
        r->tls_files.cert = value;
        return true;
    case REACH_TLS_KEY:
        r->tls_files.key = value;
        return true;
    case REACH_TLS_NAME:
        r->tls_name = value;
        return true;
    default:
        return false;
    }
}

static int make_tls(const char *command, struct reach *r) {
    char why[TLS_ERROR_BYTES];
    const struct tls_files *files = &r->tls_files;
    if (!files->cert != !files->key) {
        return command_fail(command, EXIT_USAGE, "--tls-cert and --tls-key go together");
    }
    if (!r->tls && (files->cert || r->tls_name)) {
        return command_fail(command, EXIT_USAGE,
                            "--tls-cert, --tls-key and --tls-name go with --tls or --tls-ca");
    }
    r->to.tls = r->context = r->tls ? tls_client(files, why) : NULL;
    r->to.tls_name = r->tls_name;
    return r->tls && !r->context ? command_fail(command, EXIT_USAGE, "%s", why) : EXIT_SUCCESS;
}

static int read_secret(const char *command, struct reach *r) {
    char why[SECRET_ERROR_BYTES];
    if (r->secret_file && !secret_read(r->secret_file, &r->secret, why)) {
        return command_fail(command, EXIT_USAGE, "--secret-file %s", why);
    }
    r->to.secret = r->secret_file ? &r->secret : NULL;
    return EXIT_SUCCESS;
}

int reach_prepare(const char *command, struct reach *r) {
    r->to = (struct client_options){.host = r->host, .timeout_ms = REACH_MS};
    int status =
        reach_address(command, r->collector ? r->collector : REACH_DEFAULT, r->host, &r->to.port);
    status = status == EXIT_SUCCESS ? make_tls(command, r) : status;
    return status == EXIT_SUCCESS ? read_secret(command, r) : status;
}

int reach_fail(const char *command, const struct client_options *to, const struct client_error *e) {
    char at[REACH_AT_BYTES];
    return command_fail(command, EXIT_FAILURE, "cannot reach the collector at %s: %s%s",
                        reach_at(to, at), e->text,
                        e->fault == CLIENT_ABSENT ? "; name a running one with --collector" : "");
}

struct client *reach_open(const char *command, struct reach *r, int *status) {
    struct client_error e;
    *status = reach_prepare(command, r);
    struct client *c = *status == EXIT_SUCCESS ? client_open(&r->to, &e) : NULL;
    secret_clear(&r->secret);
    if (!c && *status == EXIT_SUCCESS) {
        *status = reach_fail(command, &r->to, &e);
    }
    return c;
}

void reach_close(struct reach *r) {
    tls_free(r->context);
    r->context = NULL;
    secret_clear(&r->secret);
}

int reach_ask(const char *command, struct client *c, struct buffer *message) {
    bool sent = !message->failed && message->len > 0 && client_send(c, message);
    buffer_free(message);
    return sent ? EXIT_SUCCESS
                : command_fail(command, EXIT_FAILURE, "the collector is gone: %s", client_why(c));
}

// Tells what an error message says.
static void tell_error(const char *command, struct control_map message) {
    struct slice text = slice_text("it gives no reason");
    control_get_text(message, FIELD_TEXT, &text);
    command_fail(command, EXIT_FAILURE, "%.*s", (int)(text.len < 400 ? text.len : 400),
                 (const char *)text.data);
}

struct control *reach_either(const char *command, struct client *c, const char *type,
                             const char *other, int timeout_ms) {
    for (;;) {
        struct control *message;
        struct slice got = {0};
        switch (client_next(c, timeout_ms, &message)) {
        case CLIENT_TIMEOUT:
            command_fail(command, EXIT_FAILURE, "the collector does not answer");
            return NULL;
        case CLIENT_CLOSED:
            command_fail(command, EXIT_FAILURE, "the collector is gone: %s", client_why(c));
            return NULL;
        case CLIENT_MESSAGE:
            break;
        }
        control_get_text(control_root(message), FIELD_TYPE, &got);
        if (slice_is(got, type) || slice_is(got, other)) {
            return message;
        }
        bool refused = slice_is(got, CONTROL_ERROR);
        if (refused) {
            tell_error(command, control_root(message));
        }
        control_free(message);
        if (refused) {
            return NULL;
        }
    }
}

struct control *reach_answer(const char *command, struct client *c, const char *type,
                             int timeout_ms) {
    return reach_either(command, c, type, type, timeout_ms);
}
