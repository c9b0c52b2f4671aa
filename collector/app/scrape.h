// SPDX-License-Identifier: Apache-2.0
// What the collector tells programs that scrape it, beside what its statistics add up to: how its
// nodes are, and what waits.
#pragma once

#include "app/roster.h"
#include "report/meters.h"

// Enters the nodes and the queue as they are now, and copies it all. NULL without memory.
struct meters *scrape_copy(struct meters *m, const struct roster *roster, struct meter_queue queue);
