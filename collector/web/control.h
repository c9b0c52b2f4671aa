// SPDX-License-Identifier: Apache-2.0
// What browsers and programs want done of the collector: POST, from the page itself or from a
// program, by who knows the token. Runs on the server's thread.
#pragma once

#include <event2/http.h>
#include <stdbool.h>

#include "web/access.h"
#include "web/reply.h"
#include "web/web.h"

struct control_desk {
    const struct web_options *options; // its order: NULL: nothing can be ordered
    const struct access_rules *rules;
    struct outbox *outbox;
    struct web_order *first; // that wait for their answer
    uint32_t count;
};

// Answers a request that is none of GET and HEAD, or that asks for an address where only orders are
// taken, or for what a node is asked: does what is ordered, or says why not. False, and nothing is
// answered: it is no such request. The token was seen, where there is one.
bool control_take(struct control_desk *desk, struct evhttp_request *req, const char *path);
// Ends those that wait: nobody may answer them any more.
void control_end_all(struct control_desk *desk);
