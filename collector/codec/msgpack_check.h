// SPDX-License-Identifier: Apache-2.0
// A pre-scan of msgpack bytes from a socket (the msgpack specification, Formats). The library's
// unpacker allocates what a header claims before it looks at the bytes: `dd 3d0a dd3d 0a` asks it
// for 34 GB. Behind this scan it allocates by what is there. Pure: no allocation, no recursion.
#pragma once

#include "base/bytes.h"

// Whether bytes are exactly one msgpack value, nested at most LIMIT_CONTROL_DEPTH deep, with at
// most LIMIT_CONTROL_ELEMENTS elements in all its arrays and maps (a pair counts as two), each
// present.
bool msgpack_check(struct slice bytes);
