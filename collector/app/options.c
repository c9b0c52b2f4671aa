// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/service.h"
#include "base/limits.h"
#include "base/text_time.h"
#include "export/export.h"
#include "export/otlp.h"
#include "web/web.h"

static const char HELP[] =
    "Usage: kprof-collector --listen [ADDR:]PORT --db FILE [OPTION]...\n"
    "\n"
    "Takes the traces that kprof's shim sends from Erlang nodes, rebuilds their requests and\n"
    "keeps per-tier statistics in an SQLite database. Runs in the foreground until SIGTERM or\n"
    "SIGINT.\n"
    "\n"
    "  --listen [ADDR:]PORT     where shims connect to; ADDR is 127.0.0.1 unless told otherwise\n"
    "  --secret-file FILE       who connects must know the secret in FILE; demanded when ADDR is\n"
    "                           not loopback\n"
    "  --tls-cert FILE          speak TLS (1.2 or newer) only, with the certificates in FILE\n"
    "  --tls-key FILE           the first one's key\n"
    "  --tls-ca FILE            demand certificates of clients too, from the authorities in FILE\n"
    "  --db FILE                the database, made when it is not there\n"
    "  --http [ADDR:]PORT       serve the page, for browsers; ADDR is 127.0.0.1 unless told\n"
    "                           otherwise. With --tls-cert it speaks TLS\n"
    "  --http-token-file FILE   who opens the page must know the token in FILE; demanded when\n"
    "                           ADDR is not loopback\n"
    "  --http-plain             allow the page elsewhere than on loopback without TLS: for a\n"
    "                           proxy in front that speaks it\n"
    "  --http-allow-control     who knows the token may also pause, resume and sample nodes, trace\n"
    "                           requests fully, sample stacks, set triggers and add notes from\n"
    "                           the page; demands --http-token-file\n"
    "  --export URL             send the history to ClickHouse, at clickhouse[s]://[USER@]HOST\n"
    "                           [:PORT]/DATABASE (port 8123, with TLS 8443); what the engine\n"
    "                           does not take is kept and sent later. none: forget what is\n"
    "                           still to be sent\n"
    "  --export-password-file FILE  the user's password\n"
    "  --export-ca FILE         the engine's certificate is from the authorities in FILE, not\n"
    "                           from the system's\n"
    "  --export-as NAME         this collector's name in all rows (default: the host's)\n"
    "  --export-label cluster=NAME  the cluster that its nodes are of: kprof report --from-cluster\n"
    "                           and the page can ask for that alone\n"
    "  --otlp URL               send kept requests as traces, and statistics of requests as\n"
    "                           metrics, to what speaks OTLP over HTTP, at http[s]://HOST[:PORT]\n"
    "                           [/PATH] (port 4318); what is not taken is kept and sent later.\n"
    "                           It begins with what comes from then on. none: forget what is\n"
    "                           still to be sent\n"
    "  --otlp-headers-file FILE  headers for the receiver, such as Authorization: Bearer TOKEN, a\n"
    "                           line each\n"
    "  --otlp-ca FILE           the receiver's certificate is from the authorities in FILE, not\n"
    "                           from the system's\n"
    "  --otlp-only SIGNAL       send traces alone, or metrics alone\n"
    "  --bucket SECONDS         length of the finest statistics, a divisor of an hour (default\n"
    "                           10)\n"
    "  --flush SECONDS          how often statistics are written (default 1)\n"
    "  --request-timeout TIME   age at which a request without an end expires (default 30s)\n"
    "  --slow-threshold TIME    the log tells of requests over it (default 1s); a node's shim\n"
    "                           may say otherwise\n"
    "  --threads N              threads that take traces in, 1 to 8 (default 1). One node's are\n"
    "                           taken in by one of them\n"
    "  --stats-log FILE         also append each flush's rows to FILE, as JSON lines\n"
    "  --record DIR             also keep every trace stream, for kprof replay, without what\n"
    "                           functions returned\n"
    "  --record-values          with what they returned, whatever secrets are in it: byte for\n"
    "                           byte\n"
    "  --version, --help\n"
    "\n"
    "TIME is a number with ms, s, m, h or d; without a unit it is seconds.\n"
    "\n"
    "As a service: takes a listening socket from systemd instead of --listen (socket\n"
    "activation), and tells it when it is ready, when it ends and that it is alive (Type=notify,\n"
    "WatchdogSec=).\n"
    "\n"
    "Exit status: 0 ended by a signal with everything written, 1 something broke, 2 wrong usage,\n"
    "3 the port cannot be had, 4 the database cannot be written or is in use, 5 the file is not\n"
    "a kprof database or is of a newer kprof.\n";

__attribute__((format(printf, 1, 2))) static int usage(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("kprof-collector: ", stderr);
    vfprintf(stderr, format, args);
    fputs(" (see --help)\n", stderr);
    va_end(args);
    return EXIT_USAGE;
}

// Returns -1 or an exit status.
static int parse_listen(const char *option, const char *text, char address[LISTEN_ADDRESS_BYTES],
                        uint16_t *port) {
    char why[LISTEN_WHY_BYTES];
    return listen_address_parse(text, address, port, why) ? -1
                                                          : usage("--%s %s: %s", option, text, why);
}

static int parse_time(const char *name, const char *text, int64_t least, int64_t most,
                      int64_t *ns) {
    int64_t value;
    char low[32], high[32];
    if (text_duration_parse(text, &value) && value >= least && value <= most) {
        *ns = value;
        return -1;
    }
    snprintf(low, sizeof low, "%g", (double)least / 1e9);
    snprintf(high, sizeof high, "%g", (double)most / 1e9);
    return usage("--%s %s: want a time between %s and %s seconds", name, text, low, high);
}

static int check_http(const struct collector_options *o) {
    char why[WEB_ERROR_BYTES];
    if (!o->http_address[0]) {
        return o->http_token_file || o->http_plain || o->http_allow_control
                   ? usage("--http [ADDR:]PORT is missing")
                   : -1;
    }
    if (o->http_allow_control && !o->http_token_file) {
        return usage("--http-allow-control: --http-token-file FILE is missing, for who may steer "
                     "nodes must know a token, on loopback too; make one with: (umask 077; openssl "
                     "rand -hex 32 >FILE)");
    }
    return web_may_listen(o->http_address, o->http_token_file, o->tls_cert, o->http_plain, why)
               ? -1
               : usage("--http %s: %s", o->http_address, why);
}

enum {
    LISTEN = 1,
    DB,
    BUCKET,
    FLUSH,
    TIMEOUT,
    SLOW,
    THREADS,
    STATS_LOG,
    RECORD,
    RECORD_VALUES,
    SECRET_FILE,
    TLS_CERT,
    TLS_KEY,
    TLS_CA,
    HTTP,
    HTTP_TOKEN_FILE,
    HTTP_PLAIN,
    HTTP_ALLOW_CONTROL,
    EXPORT,
    EXPORT_PASSWORD_FILE,
    EXPORT_CA,
    EXPORT_AS,
    EXPORT_LABEL,
    OTLP,
    OTLP_HEADERS_FILE,
    OTLP_CA,
    OTLP_ONLY,
    VERSION,
    HELP_WANTED
};

static const struct option longs[] = {
    {"listen", required_argument, NULL, LISTEN},
    {"db", required_argument, NULL, DB},
    {"bucket", required_argument, NULL, BUCKET},
    {"flush", required_argument, NULL, FLUSH},
    {"request-timeout", required_argument, NULL, TIMEOUT},
    {"slow-threshold", required_argument, NULL, SLOW},
    {"threads", required_argument, NULL, THREADS},
    {"stats-log", required_argument, NULL, STATS_LOG},
    {"record", required_argument, NULL, RECORD},
    {"record-values", no_argument, NULL, RECORD_VALUES},
    {"secret-file", required_argument, NULL, SECRET_FILE},
    {"tls-cert", required_argument, NULL, TLS_CERT},
    {"tls-key", required_argument, NULL, TLS_KEY},
    {"tls-ca", required_argument, NULL, TLS_CA},
    {"http", required_argument, NULL, HTTP},
    {"http-token-file", required_argument, NULL, HTTP_TOKEN_FILE},
    {"http-plain", no_argument, NULL, HTTP_PLAIN},
    {"http-allow-control", no_argument, NULL, HTTP_ALLOW_CONTROL},
    {"export", required_argument, NULL, EXPORT},
    {"export-password-file", required_argument, NULL, EXPORT_PASSWORD_FILE},
    {"export-ca", required_argument, NULL, EXPORT_CA},
    {"export-as", required_argument, NULL, EXPORT_AS},
    {"export-label", required_argument, NULL, EXPORT_LABEL},
    {"otlp", required_argument, NULL, OTLP},
    {"otlp-headers-file", required_argument, NULL, OTLP_HEADERS_FILE},
    {"otlp-ca", required_argument, NULL, OTLP_CA},
    {"otlp-only", required_argument, NULL, OTLP_ONLY},
    {"version", no_argument, NULL, VERSION},
    {"help", no_argument, NULL, HELP_WANTED},
    {NULL, 0, NULL, 0}};

static const int64_t S = 1000000000;

static int parse_bucket(const char *text, int64_t *seconds) {
    int64_t ns = S;
    int status = parse_time("bucket", text, S, 3600 * S, &ns);
    if (status < 0 && (ns % S != 0 || 3600 % (ns / S) != 0)) {
        status =
            usage("--bucket %s: want whole seconds that divide an hour, such as 1, 10 or 60", text);
    }
    *seconds = ns / S;
    return status;
}

// There is one label.
static int parse_label(const char *text, const char **cluster) {
    static const char key[] = "cluster=";
    bool ok = strncmp(text, key, sizeof key - 1) == 0 && export_name_valid(text + sizeof key - 1);
    *cluster = ok ? text + sizeof key - 1 : NULL;
    return ok ? -1
              : usage("--export-label %s: want cluster=NAME, of 1 to %d bytes of printable text",
                      text, EXPORT_NAME_BYTES - 1);
}

static int parse_threads(const char *text, uint32_t *threads) {
    static_assert(LIMIT_PIPELINES == 8, "as it is told, here and in --help");
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || n < 1 || n > (long)LIMIT_PIPELINES) {
        return usage("--threads %s: want a number from 1 to 8", text);
    }
    *threads = (uint32_t)n;
    return -1;
}

// An option with its value, or NULL. Returns -1, or the exit status of a wrong one. listen: whether
// there is a --listen.
static int take(struct collector_options *out, int option, const char *text, bool *listen) {
    switch (option) {
    case LISTEN:
        *listen = true;
        return parse_listen("listen", text, out->address, &out->port);
    case DB:
        out->db = text;
        break;
    case BUCKET:
        return parse_bucket(text, &out->bucket_s);
    case FLUSH:
        return parse_time("flush", text, S / 10, 60 * S, &out->flush_ns);
    case TIMEOUT:
        return parse_time("request-timeout", text, S, 3600 * S, &out->timeout_ns);
    case SLOW:
        return parse_time("slow-threshold", text, 0, 3600 * S, &out->slow_threshold_ns);
    case THREADS:
        return parse_threads(text, &out->threads);
    case STATS_LOG:
        out->stats_log = text;
        break;
    case RECORD:
        out->record = text;
        break;
    case RECORD_VALUES:
        out->record_values = true;
        break;
    case SECRET_FILE:
        out->secret_file = text;
        break;
    case TLS_CERT:
        out->tls_cert = text;
        break;
    case TLS_KEY:
        out->tls_key = text;
        break;
    case TLS_CA:
        out->tls_ca = text;
        break;
    case HTTP:
        return parse_listen("http", text, out->http_address, &out->http_port);
    case HTTP_TOKEN_FILE:
        out->http_token_file = text;
        break;
    case HTTP_PLAIN:
        out->http_plain = true;
        break;
    case HTTP_ALLOW_CONTROL:
        out->http_allow_control = true;
        break;
    case EXPORT:
        out->export_to = text;
        break;
    case EXPORT_PASSWORD_FILE:
        out->export_password_file = text;
        break;
    case EXPORT_CA:
        out->export_ca = text;
        break;
    case EXPORT_AS:
        out->export_as = text;
        break;
    case EXPORT_LABEL:
        return parse_label(text, &out->export_cluster);
    case OTLP:
        out->otlp_to = text;
        break;
    case OTLP_HEADERS_FILE:
        out->otlp_headers_file = text;
        break;
    case OTLP_CA:
        out->otlp_ca = text;
        break;
    case OTLP_ONLY:
        out->otlp_only = text;
        break;
    }
    return -1;
}

static int check_export(const struct collector_options *o) {
    char why[EXPORT_WHY_BYTES];
    if (!o->export_to || strcmp(o->export_to, COLLECTOR_EXPORT_NONE) == 0) {
        return o->export_password_file || o->export_ca || o->export_as || o->export_cluster
                   ? usage("--export clickhouse[s]://[USER@]HOST[:PORT]/DATABASE is missing")
                   : -1;
    }
    // the address itself may have a password in it, and is not repeated
    if (!export_check(o->export_to, o->export_password_file, why)) {
        return usage("--export: %s", why);
    }
    if (o->export_ca && strncmp(o->export_to, "clickhouses:", strlen("clickhouses:")) != 0) {
        return usage("--export-ca: only with --export clickhouses://, which speaks TLS");
    }
    return !o->export_as || export_name_valid(o->export_as)
               ? -1
               : usage("--export-as: want 1 to %d bytes of printable text", EXPORT_NAME_BYTES - 1);
}

static int check_otlp(const struct collector_options *o) {
    char why[OTLP_WHY_BYTES];
    if (!o->otlp_to || strcmp(o->otlp_to, COLLECTOR_EXPORT_NONE) == 0) {
        return o->otlp_headers_file || o->otlp_ca || o->otlp_only
                   ? usage("--otlp http[s]://HOST[:PORT][/PATH] is missing")
                   : -1;
    }
    // the address itself may have a password in it, and is not repeated
    if (!otlp_check(o->otlp_to, o->otlp_headers_file, why)) {
        return usage("--otlp: %s", why);
    }
    if (o->otlp_ca && strncmp(o->otlp_to, "https:", strlen("https:")) != 0) {
        return usage("--otlp-ca: only with --otlp https://, which speaks TLS");
    }
    for (int i = 0; o->otlp_only && i < OTLP_SIGNALS; i++) {
        if (strcmp(o->otlp_only, otlp_signal_name((enum otlp_signal)i)) == 0) {
            return -1;
        }
    }
    return o->otlp_only ? usage("--otlp-only %s: want traces or metrics", o->otlp_only) : -1;
}

// Whether the options go together: -1, or an exit status.
static int check(const struct collector_options *out, bool listen) {
    if (!listen || !out->db) {
        return usage("%s is missing", listen ? "--db FILE" : "--listen [ADDR:]PORT");
    }
    if (out->record_values && !out->record) {
        return usage("--record-values: --record DIR is missing");
    }
    if (!out->tls_cert != !out->tls_key || (out->tls_ca && !out->tls_cert)) {
        return usage("%s is missing", out->tls_cert ? "--tls-key FILE" : "--tls-cert FILE");
    }
    if (out->address[0] && !listen_address_loopback(out->address) && !out->secret_file) {
        return usage("--listen %s: other machines can connect there, so --secret-file FILE is "
                     "required; make one with: (umask 077; openssl rand -hex 32 >FILE)",
                     out->address);
    }
    int status = check_http(out);
    status = status >= 0 ? status : check_export(out);
    return status >= 0 ? status : check_otlp(out);
}

int collector_options_parse(int argc, char **argv, struct collector_options *out) {
    *out = (struct collector_options){
        .bucket_s = 10, .flush_ns = S, .timeout_ns = 30 * S, .slow_threshold_ns = S, .threads = 1};
    bool listen = false;
    int status = -1;
    opterr = 0;
    for (int option; status < 0 && (option = getopt_long(argc, argv, ":", longs, NULL)) != -1;) {
        switch (option) {
        case VERSION:
            puts("kprof-collector " KPROF_VERSION);
            return EXIT_SUCCESS;
        case HELP_WANTED:
            fputs(HELP, stdout);
            return EXIT_SUCCESS;
        case ':':
            return usage("%s needs a value", argv[optind - 1]);
        case '?':
            return usage("unknown option %s", argv[optind - 1]);
        default:
            status = take(out, option, optarg, &listen);
        }
    }
    if (status >= 0) {
        return status;
    }
    if (optind < argc) {
        return usage("unexpected argument %s", argv[optind]);
    }
    return check(out, listen || service_activated());
}
