// SPDX-License-Identifier: Apache-2.0
// What a server is made of.
#pragma once

#include <event2/listener.h>

#include "net/newcomer.h"
#include "net/server.h"

struct server {
    struct evconnlistener *listener;
    struct event *second; // a timer: newcomers that take too long
    struct connections connections;
    struct sessions sessions;
    struct newcomers newcomers;
    bool deaf; // the listener is off until the next second
};
