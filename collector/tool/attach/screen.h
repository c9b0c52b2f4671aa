// SPDX-License-Identifier: Apache-2.0
// What kprof attach shows while it is attached: the connection to the collector, and the table that
// is drawn anew each second, or JSON lines. The terminal stays as it is, with its cursor below the
// table: however this process ends, there is nothing to be put right. One thread.
#pragma once

#include "net/client.h"
#include "tool/attach/view.h"

enum { SCREEN_WHY_BYTES = CLIENT_WHY_BYTES + 512 };

struct screen {
    struct client_options to; // the collector; host NULL: nothing is shown
    const char *node;
    bool json;
    struct client *client; // NULL: not connected
    int64_t tried_ns;      // when it was tried last
    struct view view;
    struct buffer shown;              // the table that stands above the cursor, as it was drawn
    uint32_t width, height;           // in a terminal of this size
    uint32_t seen_width, seen_height; // of the terminal at the last turn
    bool heard;                       // there were numbers
    uint32_t unknown;                 // times that the collector knew no such node, before that
    char why[SCREEN_WHY_BYTES];       // there is nothing to show; not cleaned
    bool told;                        // the caller knows
    // errno of a write to standard output that failed: nobody sees what is shown any more; 0: none
    int broken;
};

// There is something to show on a terminal, or when JSON is wanted, and if the collector is known
// (to->host). What `to` points to must last as long as the screen.
struct screen screen_make(const struct client_options *to, bool json);
// To be called some times a second while node is traced: connects, reads, draws. Takes a second at
// most, when the collector is not there. Returns why there is nothing to show, once; NULL
// otherwise.
const char *screen_turn(struct screen *s, const char *node, int64_t now_ns);
// Take the table away, so that a line can be written, and draw it again.
void screen_hide(struct screen *s);
void screen_show(struct screen *s);
// Ends it; the last table stays.
void screen_close(struct screen *s);
