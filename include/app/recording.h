// A trace stream kept in a file as it came, for kprof replay. A full disk ends the recording, never the collecting.
#pragma once

#include "base/bytes.h"

struct recording;

// Starts DIR/NODE-TIME-SESSION.cap; now is ns since 1970 UTC. NULL, and the log says why, when it cannot.
struct recording *recording_start(const char *dir, const char *node, int64_t session, int64_t now);
void recording_add(struct recording *r, struct slice bytes);
// NULL is allowed.
void recording_end(struct recording *r);
