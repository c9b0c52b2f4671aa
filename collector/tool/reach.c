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

struct client *reach_open(const char *command, const char *text, int *status) {
    char host[REACH_HOST_BYTES], why[CLIENT_WHY_BYTES];
    uint16_t port = 0;
    *status = reach_address(command, text, host, &port);
    if (*status != EXIT_SUCCESS) {
        return NULL;
    }
    struct client *c = client_open(host, port, REACH_MS, why);
    if (!c) {
        *status = command_fail(command, EXIT_FAILURE, "cannot reach the collector at %s:%u: %s; name a running one with --collector",
                               host, port, why);
    }
    return c;
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
