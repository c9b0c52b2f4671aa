#include "tool/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/command.h"

int reach_address(const char *command, const char *text, char host[REACH_HOST_BYTES], uint16_t *port) {
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
        return command_fail(command, EXIT_USAGE, "--collector %s: want HOST:PORT, as in " REACH_DEFAULT, text);
    }
    snprintf(host, REACH_HOST_BYTES, "%.*s", colon ? (int)len : 9, colon ? start : "127.0.0.1");
    *port = (uint16_t)n;
    return EXIT_SUCCESS;
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

// What opens the way, besides the secret.
static int make_tls(const char *command, struct reach *r) {
    char why[TLS_ERROR_BYTES];
    const struct tls_files *files = &r->tls_files;
    if (!files->cert != !files->key) {
        return command_fail(command, EXIT_USAGE, "--tls-cert and --tls-key go together");
    }
    if ((files->cert || r->tls_name) && !r->tls) {
        return command_fail(command, EXIT_USAGE, "--tls-cert, --tls-key and --tls-name go with --tls or --tls-ca");
    }
    r->context = r->tls ? tls_client(files, why) : NULL;
    return r->tls && !r->context ? command_fail(command, EXIT_USAGE, "%s", why) : EXIT_SUCCESS;
}

struct client *reach_open(const char *command, struct reach *r, int *status) {
    char host[REACH_HOST_BYTES], why[CLIENT_WHY_BYTES], secret_why[SECRET_ERROR_BYTES];
    struct secret secret = {.len = 0};
    struct client_options o = {.host = host, .timeout_ms = REACH_MS, .secret = r->secret_file ? &secret : NULL};
    *status = reach_address(command, r->collector ? r->collector : REACH_DEFAULT, host, &o.port);
    *status = *status == EXIT_SUCCESS ? make_tls(command, r) : *status;
    if (*status == EXIT_SUCCESS && r->secret_file && !secret_read(r->secret_file, &secret, secret_why)) {
        *status = command_fail(command, EXIT_USAGE, "--secret-file %s", secret_why);
    }
    if (*status != EXIT_SUCCESS) {
        return NULL;
    }
    o.tls = r->context;
    o.tls_name = r->tls_name;
    struct client *c = client_open(&o, why);
    secret_clear(&secret);
    if (!c) {
        *status = command_fail(command, EXIT_FAILURE, "cannot reach the collector at %s:%u: %s; name a running one with --collector",
                               host, o.port, why);
    }
    return c;
}

void reach_close(struct reach *r) {
    tls_free(r->context);
    r->context = NULL;
}

int reach_ask(const char *command, struct client *c, struct buffer *message) {
    bool sent = !message->failed && message->len > 0 && client_send(c, message);
    buffer_free(message);
    return sent ? EXIT_SUCCESS : command_fail(command, EXIT_FAILURE, "the collector is gone: %s", client_why(c));
}

// Tells what an error message says.
static void tell_error(const char *command, struct control_map message) {
    struct slice text = slice_text("it gives no reason");
    control_get_text(message, "text", &text);
    command_fail(command, EXIT_FAILURE, "%.*s", (int)(text.len < 400 ? text.len : 400), (const char *)text.data);
}

struct control *reach_either(const char *command, struct client *c, const char *type, const char *other, int timeout_ms) {
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
        control_get_text(control_root(message), "type", &got);
        if (slice_is(got, type) || slice_is(got, other)) {
            return message;
        }
        bool refused = slice_is(got, "error");
        if (refused) {
            tell_error(command, control_root(message));
        }
        control_free(message);
        if (refused) {
            return NULL;
        }
    }
}

struct control *reach_answer(const char *command, struct client *c, const char *type, int timeout_ms) {
    return reach_either(command, c, type, type, timeout_ms);
}
