// SPDX-License-Identifier: Apache-2.0
#include "app/page.h"

#include "app/otlp_link.h"
#include "app/scrape.h"
#include "base/clock.h"
#include "base/log.h"
#include "ingest/pipeline.h"

enum { SECOND_NS = 1000000000 };

static struct bufferevent *speak_tls(struct event_base *base, evutil_socket_t fd, void *context) {
    return tls_accept(*((struct page *)context)->tls, base, fd);
}

static struct meters *copy_meters(void *context) {
    struct page *page = context;
    struct meter_queue queue = {.unwritten_s = writer_refused_s(page->writer)};
    for (uint32_t i = 0; i < pipeline_siblings(page->pipeline); i++) {
        struct pipeline *p = pipeline_sibling(page->pipeline, i);
        pipeline_visit(p);
        queue.rows += stats_rows(pipeline_stats(p));
        pipeline_part(p);
    }
    struct export_status status;
    if (page->exporter) {
        exporter_status(page->exporter, &status);
        queue.exported =
            (struct meter_export){true,         status.sending, status.twin,    status.behind_s,
                                  status.marks, status.rows,    status.refused, status.lost};
    }
    queue.otlp = otlp_link_meters(page->otlp);
    return scrape_copy(page->meters, page->roster, queue);
}

static int64_t unwritten_s(void *context) {
    return writer_refused_s(((struct page *)context)->writer);
}

static void tell_state(void *context, struct json *j) {
    struct page *page = context;
    json_key_text(j, "listen_address", page->listen_address);
    json_key_int(j, "listen_port", page->listen_port);
    page_control_state(&page->control, j);
}

static void tell_sampling(void *context, struct json *j) {
    stack_runs_json(((struct page *)context)->sampling, j);
}

static void take_order(void *context, const struct order *order, struct web_order *from) {
    page_control_order(&((struct page *)context)->control, order, from);
}

int page_open(struct page *page, struct event_base *base, const struct collector_options *o) {
    char why[WEB_ERROR_BYTES], token_why[SECRET_ERROR_BYTES];
    bool secure = *page->tls;
    if (!o->http_address[0]) {
        return EXIT_SUCCESS;
    }
    if (o->http_token_file && !secret_read(o->http_token_file, &page->token, token_why)) {
        log_error("--http-token-file %s", token_why);
        return EXIT_USAGE;
    }
    struct web_options options = {.address = o->http_address,
                                  .port = o->http_port,
                                  .db = o->db,
                                  .token = secret_slice(&page->token),
                                  .secure = secure ? speak_tls : NULL,
                                  .meters = copy_meters,
                                  .unwritten_s = unwritten_s,
                                  .state = tell_state,
                                  .sampling = tell_sampling,
                                  .look = take_order,
                                  .order = o->http_allow_control ? take_order : NULL,
                                  .arg = page};
    page->meters = meters_new(clock_wall() / SECOND_NS);
    if (!page->meters) {
        log_error("out of memory");
        return EXIT_FAILURE;
    }
    page->web = web_start(base, &options, why);
    if (!page->web) {
        log_error("--http: %s", why);
        return EXIT_LISTEN;
    }
    log_info("the page is at http%s://%s:%u/", secure ? "s" : "", o->http_address,
             web_port(page->web));
    return EXIT_SUCCESS;
}

void page_take(struct page *page, const struct stats *stats) {
    if (page->meters) {
        meters_take(page->meters, stats, pipeline_directory(page->pipeline),
                    clock_wall() / SECOND_NS);
    }
}

void page_tick(struct page *page) {
    page_control_tick(&page->control);
}

void page_close(struct page *page) {
    page_control_close(&page->control);
    web_stop(page->web);
    meters_free(page->meters);
    page->web = NULL;
    page->meters = NULL;
    secret_clear(&page->token);
}
