// SPDX-License-Identifier: Apache-2.0
// What each part of a profile of samples weighs, for the viewer's file: so that it draws any range
// of its heat map by itself.
#pragma once

#include "codec/json.h"
#include "report/flame_file.h"

// Bytes of it in a file at most. A minute of a hundred processes takes 1 to 3 MB.
enum { PARTS_BYTES = 6 << 20 };

// One JSON object, described in web/page/README.md, of the stacks of flame_view_json in the cells
// of heat_put_maps; where that is too much, of their columns. The profile is weighed anew, with
// what it was weighed by. False, and nothing is written: that is too much, too, or memory is out.
bool parts_put(const struct flame_drawing *d, struct buffer *out);
