// SPDX-License-Identifier: Apache-2.0
// The page of the daemon: its options, its token, and what it tells those who scrape.
#pragma once

#include "app/options.h"
#include "app/page_control.h"
#include "app/roster.h"
#include "export/export.h"
#include "net/secret.h"
#include "net/tls.h"
#include "report/meters.h"
#include "store/writer.h"
#include "web/web.h"

struct page {
    struct web *web;       // NULL: none
    struct meters *meters; // NULL without the page
    struct secret token;   // len 0: none
    struct page_control control;
    // the daemon's, which live as long as the page
    struct tls *const *tls; // what connections to come speak, which changes; NULL in it: plain
    const struct roster *roster;
    const struct stack_runs *sampling;
    struct pipeline *pipeline; // or one of those that share its names
    struct writer *writer;
    struct exporter *exporter; // NULL: nothing is exported
    struct otlp *otlp;         // NULL: nothing is sent so
    // where shims connect to
    const char *listen_address;
    uint16_t listen_port;
};

// Opens the page where options ask for one; the last eight fields and control's tools are filled in
// before. Returns an exit status; what went wrong is in the log.
int page_open(struct page *page, struct event_base *base, const struct collector_options *options);
// A flush's rows, each once.
void page_take(struct page *page, const struct stats *stats);
// Some ten times a second.
void page_tick(struct page *page);
void page_close(struct page *page);
