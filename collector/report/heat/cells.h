// SPDX-License-Identifier: Apache-2.0
// What the JSON object and the script of a picture both read.
#pragma once

#include "codec/json.h"
#include "report/heat.h"

// The columns, rows and cells, as keys of an object that is open.
void heat_put_cells(struct json *j, const struct heat *h);
