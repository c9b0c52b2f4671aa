// SPDX-License-Identifier: Apache-2.0
#include "web/metrics.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "store/query_slow.h"
#include "web/accept.h"

enum { EXAMPLES = 200 }; // kept requests of the last hour that exemplars are chosen from

// Where the page is, as who asks has found it. Left out where the header has anything that a link
// would have to escape: then somebody plays tricks.
static void page_of(const struct web_options *options, const char *host,
                    char out[METERS_PAGE_BYTES]) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";
    int len = snprintf(out, METERS_PAGE_BYTES, "http%s://%s", options->secure ? "s" : "",
                       host ? host : "");
    if (!host || !*host || host[strspn(host, plain)] || len >= METERS_PAGE_BYTES) {
        out[0] = 0;
    }
}

bool metrics_copy(const struct web_options *options, struct evhttp_request *req,
                  const struct address *address, struct answer *a) {
    const struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
    a->unwritten_s = options->unwritten_s ? options->unwritten_s(options->arg) : 0;
    if (address->work != metrics_work || !options->meters) {
        return true;
    }
    a->asked.form = accept_form(evhttp_find_header(headers, "Accept"));
    page_of(options, evhttp_find_header(headers, "Host"), a->asked.page);
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
    bool wanted = store && a->asked.form != METERS_PROMETHEUS;
    a->asked.examples = wanted && query_slow_list(store, &filter, &examples) ? &examples : NULL;
    meters_write(a->meters, &a->asked, &a->out);
    a->asked.examples = NULL;
    slow_list_free(&examples);
    a->type = meters_type(a->asked.form);
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
