// SPDX-License-Identifier: Apache-2.0
// A thread that reads data connections, for a server whose event loop has too much to do with them
// (server_events.intake). What it reads it tells behind a gate, piece by piece. All functions here
// are for the event loop's thread, but for intake_news.
#pragma once

#include <event2/event.h>

#include "base/gate.h"

struct intake;

// Starts the thread, which works behind the gate that who listens has to what he is told. news is
// called on the event loop, after intake_news. NULL without memory, threads or files. The gate must
// outlive it.
struct intake *intake_start(struct event_base *base, struct gate *gate, void (*news)(void *context),
                            void *context);
// Ends it, once no connection is left. NULL is allowed.
void intake_stop(struct intake *in);
// The thread, while it tells what it has read: there is something to be done on the event loop.
void intake_news(struct intake *in);
