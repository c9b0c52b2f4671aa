// SPDX-License-Identifier: Apache-2.0
// kprof doctor: the collector, the nodes that it knows, and its database.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/text_amount.h"
#include "base/text_time.h"
#include "base/time_math.h"
#include "report/trust.h"
#include "store/query.h"
#include "tool/doctor/checks.h"
#include "tool/nodes/nodes.h"
#include "tool/reach.h"

enum {
    CLOCK_OFF_US = 1000000, // of two hosts that keep the time: far less
    STALE_S = 60,           // of a database with statistics of every ten seconds
    RECENT_S = 3600
};

// -- nodes

static void look_at_state(struct doctor *d, const struct doctor_about *about,
                          const struct node_row *n) {
    char sampling[NODE_WORD], unmarked[TRUST_UNMARKED_BYTES];
    if (n->connected && n->unmarked_calls > 0) {
        doctor_tell(d, DOCTOR_WARNING, about, TRUST_UNMARKED_ADVICE, "armed; %s",
                    trust_unmarked_text((uint64_t)n->unmarked_calls, unmarked));
    }
    if (!n->connected) {
        doctor_tell(d, DOCTOR_WARNING, about,
                    "if it should be traced: kprof attach, or start_kprof_node.sh",
                    "not connected (since %s)", n->since);
    } else if (strcmp(n->state, STATE_TRIPPED) == 0) {
        doctor_tell(d, DOCTOR_WARNING, about, "fewer tiers, or kprof trace NODE sample N",
                    "tripped: more trace messages than its port takes");
    } else if (strcmp(n->state, STATE_PAUSED) == 0) {
        doctor_tell(d, DOCTOR_WARNING, about, "kprof trace NODE resume",
                    "paused with kprof trace: nothing is armed");
    } else if (strcmp(n->state, STATE_TRACING) == 0) {
        doctor_tell(d, DOCTOR_OK, about, NULL,
                    "armed: %" PRId64 " tier%s, sampling %s; %.1f requests/s; %s; OTP %s", n->tiers,
                    text_plural((uint64_t)n->tiers), nodes_sampling(n, sampling), n->requests_per_s,
                    strcmp(n->tracer, TRACER_NATIVE) == 0 ? "native tracer" : "trace port", n->otp);
    } else {
        doctor_tell(d, DOCTOR_WARNING, about, "kprof attach, or start_trace in the node",
                    "connected, nothing is armed (%s)", n->state);
    }
}

static void look_at_losses(struct doctor *d, const struct doctor_about *about,
                           const struct node_row *n) {
    int64_t lost = n->incomplete + n->expired, all = lost + n->complete;
    if (n->dropped_messages > 0 || n->decode_errors > 0) {
        doctor_tell(d, DOCTOR_WARNING, about,
                    "sample, or trace fewer tiers: kprof report --cost tells which cost most",
                    "%" PRId64 " messages dropped, %" PRId64
                    " not understood since the collector started",
                    n->dropped_messages, n->decode_errors);
    }
    if (lost * 100 > all) {
        doctor_tell(d, DOCTOR_WARNING, about,
                    "the view ledger tells why: losses, lost tokens, calls that never return",
                    "%" PRId64 " of %" PRId64 " requests incomplete or expired", lost, all);
    }
    if (n->trips > 0) {
        doctor_tell(d, DOCTOR_WARNING, about, "kprof nodes --history",
                    "its breaker has tripped %" PRId64 " time%s", n->trips,
                    text_plural((uint64_t)n->trips));
    }
}

static void look_at_node(struct doctor *d, const struct node_row *n) {
    char off[TEXT_DURATION_BYTES];
    const struct doctor_about *about = &(struct doctor_about){"node", n->node};
    look_at_state(d, about, n);
    look_at_losses(d, about, n);
    if (!n->connected) {
        return;
    }
    if (strcmp(n->version, KPROF_VERSION) != 0) {
        doctor_tell(d, DOCTOR_WARNING, about, "use the shim of the same release",
                    "its shim is of version %s, this tool of " KPROF_VERSION, n->version);
    }
    int64_t us = n->clock_offset_us;
    text_duration((us < 0 ? -(double)us : (double)us) * 1000, off);
    if (!n->has_clock) {
        doctor_tell(d, DOCTOR_WARNING, about, NULL, "it has not told its time yet");
    } else if (us > CLOCK_OFF_US || us < -CLOCK_OFF_US) {
        doctor_tell(
            d, DOCTOR_WARNING, about,
            "set the clocks of both hosts right (NTP): buckets and remote parts go by the node's "
            "time",
            "its clock is %s %s the collector's", off, us < 0 ? "behind" : "ahead of");
    } else {
        doctor_tell(d, DOCTOR_OK, about, NULL, "its clock is %s %s the collector's, delay included",
                    off, us < 0 ? "behind" : "ahead of");
    }
}

void doctor_collector(struct doctor *d, struct reach *reach) {
    static const char advice[] =
        "start it (systemctl start kprof-collector), or say with --collector where it is";
    const struct doctor_about *about = &(struct doctor_about){"collector", reach->collector};
    struct client_error e = {CLIENT_TROUBLE,
                             "see the line above"}; // which reach_prepare has written
    uint32_t count;
    struct nodes_collector of = {0};
    struct client *c = reach_prepare("doctor", reach) == 0 ? client_open(&reach->to, &e) : NULL;
    if (!c) {
        doctor_tell(d, DOCTOR_PROBLEM, about, e.fault == CLIENT_ABSENT ? advice : NULL,
                    "cannot be reached: %s", e.text);
        reach_close(reach);
        return;
    }
    d->rows = calloc(LIMIT_NODES, sizeof *d->rows);
    bool asked = d->rows && nodes_ask("doctor", c, d->rows, &count, &of) == 0;
    if (!asked) {
        doctor_tell(d, DOCTOR_PROBLEM, about, "its log tells more", "does not tell of its nodes");
    } else if (strcmp(client_version(c), KPROF_VERSION) != 0) {
        doctor_tell(d, DOCTOR_WARNING, about, "use both of one release",
                    "runs, of version %s; this tool is " KPROF_VERSION, client_version(c));
    } else {
        doctor_tell(d, DOCTOR_OK, about, NULL, "runs, version " KPROF_VERSION);
    }
    if (asked && of.unwritten_s > 0) {
        doctor_tell(d, DOCTOR_PROBLEM, about, "make room on its disk; its log tells why",
                    "has not been able to write its database for %" PRId64 " s", of.unwritten_s);
    }
    client_close(c);
    reach_close(reach);
    for (uint32_t i = 0; asked && i < count; i++) {
        node_names_add(&d->names, d->rows[i].node);
    }
    for (uint32_t i = 0; asked && i < count; i++) {
        look_at_node(d, &d->rows[i]);
    }
    if (asked && count == 0) {
        doctor_tell(d, DOCTOR_WARNING, about, "kprof attach, or start_kprof_node.sh",
                    "no node has connected since it started");
    }
}

// -- the database

static void look_at_ledger(struct doctor *d, struct store *s, const struct doctor_about *about) {
    struct query_sums sums;
    struct query lately = {
        .from_s = clock_wall() / 1000000000 - RECENT_S, .until_s = INT64_MAX, .quantiles_of = ""};
    if (query_sums(s, &lately, &sums) && sums.has_ledger) {
        const char *verdict = trust_verdict(&sums);
        bool good = strcmp(verdict, "ok") == 0;
        doctor_tell(d, good ? DOCTOR_OK : DOCTOR_WARNING, about,
                    good ? NULL : "kprof report --since 1h tells why",
                    "%" PRIu64 " complete requests in the last hour, %s",
                    sums.ledger.requests_complete, verdict);
    }
    query_sums_free(&sums);
}

void doctor_database(struct doctor *d, const char *path) {
    char error[STORE_ERROR_BYTES], until[TEXT_TIME_BYTES];
    const struct doctor_about *about = &(struct doctor_about){"database", path};
    struct store *s;
    struct stat st = {0};
    int64_t first, last, now = clock_wall() / 1000000000;
    if (store_open_reader(path, &s, error) != STORE_OK) {
        doctor_tell(d, DOCTOR_PROBLEM, about,
                    "say the file that kprof-collector was given with --db", "%s", error);
        return;
    }
    stat(path, &st);
    if (!query_extent(s, &first, &last)) {
        doctor_tell(d, DOCTOR_WARNING, about,
                    "statistics come some seconds after the first requests", "holds no data yet");
    } else {
        text_time_format(time_of_seconds(last), false, until);
        bool stale = time_sub(now, last) > STALE_S;
        doctor_tell(d, stale ? DOCTOR_WARNING : DOCTOR_OK, about,
                    stale ? "is the collector running, with this file, and a node traced?" : NULL,
                    "%.1f MB, data until %s", (double)st.st_size / 1e6, until);
        look_at_ledger(d, s, about);
    }
    store_close(s);
}
