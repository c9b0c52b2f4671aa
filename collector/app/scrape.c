// SPDX-License-Identifier: Apache-2.0
#include "app/scrape.h"

#include <string.h>

#include "codec/protocol.h"

struct meters *scrape_copy(struct meters *m, const struct roster *roster,
                           struct meter_queue queue) {
    struct meter_state states[LIMIT_NODES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        const struct roster_node *n = roster->nodes[i];
        if (n) {
            states[count++] = (struct meter_state){.node = pipeline_node_name(n->node),
                                                   .connected = n->connected,
                                                   .tracing = strcmp(n->state, STATE_TRACING) == 0,
                                                   .level_ppm = n->sampling.level_ppm};
        }
    }
    meters_nodes(m, states, count);
    meters_queue(m, queue);
    return meters_copy(m);
}
