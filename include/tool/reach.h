// A running collector, as the tool's commands reach it: --collector HOST:PORT, one connection, questions and answers. Every failure is
// told on stderr, in one line that says what to do.
#pragma once

#include <stdint.h>

#include "net/client.h"

enum { REACH_MS = 5000, REACH_HOST_BYTES = 256 };

#define REACH_DEFAULT "127.0.0.1:4711"

// Reads HOST:PORT, [IPV6]:PORT or PORT. EXIT_SUCCESS, or EXIT_USAGE and has told why.
int reach_address(const char *command, const char *text, char host[REACH_HOST_BYTES], uint16_t *port);
// Connects to where `text` says. NULL with *status set to an exit status, and has told why.
struct client *reach_open(const char *command, const char *text, int *status);
// Asks: sends the message that control_end accepted. The buffer is freed. EXIT_SUCCESS, or has told why not.
int reach_ask(const char *command, struct client *c, struct buffer *message);
// Waits for the next message of a type, passing others over; timeout_ms for each. NULL and has told why: also when the collector answers
// with an error.
struct control *reach_answer(const char *command, struct client *c, const char *type, int timeout_ms);
// The same of either of two types.
struct control *reach_either(const char *command, struct client *c, const char *type, const char *other, int timeout_ms);
