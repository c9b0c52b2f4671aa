// SPDX-License-Identifier: Apache-2.0
// Log lines about peers that are turned away.
#pragma once

#include "base/bytes.h"

// One line about such a peer; a flood of them does not fill the log (base/log.h).
void strangers_log(const char *peer, const char *why);
// What the first bytes of somebody who is no shim look like, as a reason to refuse.
const char *strangers_describe(struct slice bytes);
