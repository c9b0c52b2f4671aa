// SPDX-License-Identifier: Apache-2.0
#include "web/metrics.h"

#include <string.h>

#include "base/limits.h"
#include "store/query_slow.h"

enum { EXAMPLES = 200 }; // kept requests of the last hour that exemplars are chosen from

bool metrics_copy(const struct web_options *options, struct evhttp_request *req,
                  const struct address *address, struct answer *a) {
    const char *accept = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept");
    a->unwritten_s = options->unwritten_s ? options->unwritten_s(options->arg) : 0;
    if (address->work != metrics_work || !options->meters) {
        return true;
    }
    a->form =
        accept && strstr(accept, "application/openmetrics-text") ? METERS_OPEN : METERS_PROMETHEUS;
    a->meters = options->meters(options->arg);
    return a->meters;
}

void metrics_work(struct store *store, struct answer *a) {
    struct slow_filter filter = {
        .from_s = a->params.from_s, .until_s = a->params.until_s, .most = EXAMPLES};
    struct slow_list examples = {0};
    if (!a->meters) {
        a->status = 404;
        a->why = "a database alone has no counters: ask the collector, kprof-collector --http";
        return;
    }
    bool any = a->form == METERS_OPEN && store && query_slow_list(store, &filter, &examples);
    meters_text(a->meters, a->form, any ? &examples : NULL, &a->out);
    slow_list_free(&examples);
    a->type = a->form == METERS_OPEN ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                     : "text/plain; version=0.0.4; charset=utf-8";
}

static void ignore(void *context, const char *name) {
    (void)context;
    (void)name;
}

void metrics_work_ready(struct store *store, struct answer *a) {
    if (a->unwritten_s > LIMIT_UNWRITTEN_SECONDS) {
        a->status = 503;
        a->why = "the database cannot be written; the collector's log says why";
    } else if (!query_nodes(store, ignore, NULL)) {
        a->status = 503;
        a->why = store_error(store);
    } else {
        buffer_text(&a->out, "{\"status\":\"ready\"}\n");
    }
}
