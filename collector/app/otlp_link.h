// SPDX-License-Identifier: Apache-2.0
// --otlp in the daemon: the database followed, the thread started with its headers, and how it
// stands told to tools and scrapers.
#pragma once

#include "app/options.h"
#include "codec/control.h"
#include "export/otlp.h"
#include "report/meters.h"

// Whether the database is followed, from now on or still. An exit status; what went wrong is in the
// log.
int otlp_link_follow(struct store *store, const struct collector_options *o);
// The headers for it, "" without a file of them, or without --otlp. Wipe them. An exit status,
// likewise.
int otlp_link_headers(const struct collector_options *o,
                      char headers[LIMIT_OTLP_HEADERS_BYTES + 1]);
// Starts it where options ask for it; *out is NULL where they do not. An exit status, likewise. The
// headers go from their file to the thread, and are wiped here.
int otlp_link_start(const struct collector_options *o, struct writer *writer, struct otlp **out);

enum { OTLP_LINK_FIELDS = 5 };
// Puts OTLP_LINK_FIELDS fields into a message to a tool: in words, and the numbers of them.
void otlp_link_pack(struct control_writer *w, struct otlp *otlp);
// The same for a scrape; NULL: there is none.
struct meter_otlp otlp_link_meters(struct otlp *otlp);
