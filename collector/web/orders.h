// SPDX-License-Identifier: Apache-2.0
// What is wanted of the collector by an address and a body: their parser. Pure.
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "web/order.h"

// Whether there is something at an address that can be ordered. Sets out->kind and, where the
// address names one, out->node; the rest is as if nothing was said.
bool order_find(const char *path, struct order *out);
// Reads the body, one JSON object with the fields of openapi.json, each once; no body is the same
// as an object without fields. On false why says in a line what is wrong.
bool order_parse(struct order *order, struct slice body, char why[ORDER_WHY_BYTES]);
