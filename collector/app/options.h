// SPDX-License-Identifier: Apache-2.0
// The collector's command line.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/exit_status.h"
#include "base/listen_address.h"

// In the place of an address: what is still to be exported is forgotten.
#define COLLECTOR_EXPORT_NONE "none"

struct collector_options {
    char address[LISTEN_ADDRESS_BYTES]; // empty: only a socket that was handed over, see service.h
    uint16_t port;
    const char *db;
    int64_t bucket_s;
    int64_t flush_ns;
    int64_t timeout_ns;        // of requests
    int64_t slow_threshold_ns; // of nodes that do not say their own
    uint32_t threads;          // that take traces in
    const char *stats_log;     // NULL: none
    const char *record;        // folder; NULL: none
    bool record_values;        // recordings are kept byte for byte
    const char *secret_file;   // NULL: none
    const char *tls_cert;      // NULL: plain TCP
    const char *tls_key;
    const char *tls_ca;                      // NULL: clients need no certificates
    char http_address[LISTEN_ADDRESS_BYTES]; // of the page; empty: none
    uint16_t http_port;
    const char *http_token_file;      // who asks must know what is in it; NULL: nobody has to
    bool http_plain;                  // without TLS, though others can reach it
    bool http_allow_control;          // who knows the token may steer nodes
    const char *export_to;            // of ClickHouse, or COLLECTOR_EXPORT_NONE; NULL: no export
    const char *export_password_file; // NULL: none
    const char *export_ca;            // NULL: the system's authorities
    const char *export_as;            // NULL: the host's name
    const char *export_cluster;       // NULL: none
    const char *otlp_to;              // a receiver, or COLLECTOR_EXPORT_NONE; NULL: no OTLP
    const char *otlp_headers_file;    // NULL: none
    const char *otlp_ca;              // NULL: the system's authorities
    const char *otlp_only;            // "traces" or "metrics"; NULL: both
};

// Reads the command line; strings point into argv. Returns -1 to go on, or the exit status with
// which to end at once (after --help and --version, or with the mistake told on stderr).
int collector_options_parse(int argc, char **argv, struct collector_options *out);
