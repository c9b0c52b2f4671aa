// SPDX-License-Identifier: Apache-2.0
// The exit statuses of the programs, besides EXIT_SUCCESS and EXIT_FAILURE (anything else). Each
// --help and manual page tells those of its command. A number means one thing in a program, not in
// all of them.
#pragma once

#include <stdlib.h>

enum {
    EXIT_USAGE = 2, // a wrong option or argument; of all programs

    // kprof-collector
    EXIT_LISTEN = 3,   // the address or port cannot be had
    EXIT_DATABASE = 4, // the database cannot be written, or is another collector's
    EXIT_FOREIGN = 5,  // the file is no kprof database, or one of a newer kprof

    // kprof attach and detach; and scripts/start_kprof_node.sh, by shim/src/node/kprof_node.erl
    EXIT_NODE_DOWN = 3,   // the node cannot be reached, or is gone
    EXIT_NODE_COOKIE = 4, // it has another cookie
    EXIT_NODE_OTP = 5,    // its release is too old
    EXIT_CONFIG = 6,      // what is to be traced is not as it must be
    EXIT_NODE_LOAD = 7,   // it does not take the shim's modules
    EXIT_TRACE = 8,       // no collector, or no trace port
    EXIT_NODE_BUSY = 9,   // somebody else traces it

    // kprof flame: why there is no profile
    EXIT_NO_REQUEST = 10,       // no request came, or none lay whole in that time
    EXIT_OTHERS = 11,           // requests came, but of other identities
    EXIT_NO_FUNCTION = 12,      // no module has such a name
    EXIT_UNSEEN = 13,           // requests came, but through no process that was followed
    EXIT_DAMAGED_REQUESTS = 14, // of all that came messages were lost, or could not be joined
    EXIT_TRIPPED = 15,          // the guard has ended it

    // kprof replay
    EXIT_DAMAGED = 2 // the file is damaged or cut; what could be read was counted
};
