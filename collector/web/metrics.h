// SPDX-License-Identifier: Apache-2.0
// What other programs ask to see whether all is well: /metrics and /readyz.
#pragma once

#include <event2/http.h>

#include "web/answers.h"
#include "web/web.h"

// Takes what the answer needs of the collector, on the thread that has it. False without memory.
bool metrics_copy(const struct web_options *options, struct evhttp_request *req,
                  const struct address *address, struct answer *a);

// As in struct address.
void metrics_work(struct store *store, struct answer *a);
void metrics_work_ready(struct store *store, struct answer *a);
