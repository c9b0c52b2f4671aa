// SPDX-License-Identifier: Apache-2.0
#include "app/collector.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/flames.h"
#include "app/otlp_link.h"
#include "app/page.h"
#include "app/roster.h"
#include "app/rows.h"
#include "app/service.h"
#include "app/shim_link.h"
#include "app/tool_link.h"
#include "app/triggers.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "export/export.h"
#include "ingest/pipeline.h"
#include "store/writer.h"

enum {
    TICK_MS = 100,
    PING_SECONDS = 2,
    SECOND_NS = 1000000000,
    // allocations from here on have pages of their own, and go back when they are freed
    MMAP_BYTES = 256 << 10,
    LARGE_ROWS = 5000,               // of a flush that is not everyday's
    LINES_BYTES = LIMIT_OUTPUT_BYTES // rows in text, for the log some hundred at a time
};
static const int64_t COMPLAIN_NS = 60LL * SECOND_NS;

struct collector {
    const struct collector_options *options;
    struct event_base *base;
    struct event *timers[5];
    struct event *signals[3];
    struct server *server;
    char address[LISTEN_ADDRESS_BYTES]; // that it listens on
    struct shim_links links;
    struct tool_links tools;
    struct flames flames;
    char database[PATH_MAX]; // its file, as tools find it
    struct roster roster;
    struct pipeline_names *names; // of the pipelines, which are links.ingests
    struct store *store;
    struct writer *writer;
    // of each pipeline the set that it does not fill: empty, with the writer, or written
    struct stats *spares[LIMIT_PIPELINES];
    int64_t complain_at; // no further line about what had no room before this, monotonic ns
    FILE *stats_log;
    struct buffer lines;
    struct secret secret; // len 0: none
    struct tls *tls;      // NULL: plain TCP
    struct page page;
    struct exporter *exporter; // NULL: nothing is exported
    struct otlp *otlp;         // NULL: nothing is sent so
};

// -- flushing -------------------------------------------------------------------------------------

static void write_log(struct collector *c, const struct rows *rows) {
    bool ok = true;
    buffer_reset(&c->lines);
    for (uint32_t from = 0; ok && rows_json(rows, &from, &c->lines); buffer_reset(&c->lines)) {
        ok = !c->lines.failed &&
             fwrite(c->lines.data, 1, c->lines.len, c->stats_log) == c->lines.len;
    }
    if (!ok || fflush(c->stats_log) != 0) {
        log_error("%s: %s; no more rows are written to it", c->options->stats_log, strerror(errno));
        fclose(c->stats_log);
        c->stats_log = NULL;
    }
}

static void hand_out(struct collector *c, const struct shim_ingest *ingest,
                     const struct stats *stats) {
    page_take(&c->page, stats);
    struct rows rows = {stats, pipeline_directory(ingest->pipeline), c->options->bucket_s};
    if (c->stats_log && stats_rows(stats) > 0) {
        write_log(c, &rows);
    }
    for (struct shim_link *link = c->links.first; link; link = link->next) {
        if (link->ingest != ingest) {
            continue;
        }
        if (link->stats_wanted) {
            buffer_reset(&c->lines);
            bool whole = rows_messages(&rows, link->node_id, &c->lines);
            if (c->lines.len > 0) {
                shim_link_send(link, &c->lines);
            }
            if (!whole) {
                shim_link_left_out(link);
            }
        }
        if (link->p99) {
            buffer_reset(&c->lines);
            triggers_pack_p99(link->p99, &rows, link->node_id, &c->lines);
            if (c->lines.len > 0) {
                shim_link_send(link, &c->lines);
            }
        }
    }
}

static void complain(struct collector *c, const struct stats *stats) {
    bool overflowed = stats_overflowed(stats);
    if ((overflowed || stats_coarse(stats)) && clock_monotonic() >= c->complain_at) {
        log_warning("the memory for statistics is full until the database has taken them: %s",
                    overflowed
                        ? "some calls are counted under _other or not at all, and some of the "
                          "ledger's counts in another bucket"
                        : "some quantiles are coarser than they should be");
        c->complain_at = clock_monotonic() + COMPLAIN_NS;
    }
}

// Forgets what is written. Much of what it took lies in small pieces, which the allocator keeps
// unless it is asked.
static void forget_written(struct collector *c) {
    bool large = false;
    for (uint32_t i = 0; i < c->links.ingest_count; i++) {
        large = large || stats_rows(c->spares[i]) > LARGE_ROWS;
        stats_reset(c->spares[i]);
    }
    if (large) {
        malloc_trim(0);
    }
}

// Takes from a pipeline what it has gathered. False when there is nothing.
static bool gather(struct pipeline *pipeline, struct stats **spare) {
    pipeline_visit(pipeline);
    bool gathered = !stats_empty(pipeline_stats(pipeline));
    if (gathered) {
        *spare = pipeline_swap(pipeline, *spare);
    }
    pipeline_part(pipeline);
    return gathered;
}

// Gives what was gathered to the writer, unless it is busy: then gathering goes on and the next
// flush tries again.
static void flush(struct collector *c) {
    bool gathered = false;
    if (!writer_idle(c->writer)) {
        writer_retry(c->writer);
        return;
    }
    forget_written(c);
    for (uint32_t i = 0; i < c->links.ingest_count; i++) {
        struct shim_ingest *ingest = &c->links.ingests[i];
        if (gather(ingest->pipeline, &c->spares[i])) {
            gathered = true;
            complain(c, c->spares[i]);
            hand_out(c, ingest, c->spares[i]);
        }
    }
    if (gathered) {
        writer_submit_sets(c->writer, (const struct stats *const *)c->spares, c->links.ingest_count,
                           pipeline_directory(c->links.ingests[0].pipeline));
    }
}

// -- events ---------------------------------------------------------------------------------------

static void on_tick(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    struct collector *c = context;
    shim_links_tick(&c->links, (struct pipeline_now){clock_wall(), clock_monotonic()});
    pipeline_visit_all(c->flames.pipeline);
    flame_tick(&c->flames, clock_monotonic(), false);
    pipeline_part_all(c->flames.pipeline);
    tool_link_tick(&c->tools, clock_monotonic());
    page_tick(&c->page);
}

static void on_flush(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    flush(context);
}

static void on_ping(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    server_ping(((struct collector *)context)->server);
}

// The loop runs, and so does what it runs: the watchdog may sleep.
static void on_watchdog(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    (void)context;
    service_notify("WATCHDOG=1");
}

static void on_second(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    struct collector *c = context;
    log_settle(false);
    pipeline_visit_all(c->flames.pipeline);
    roster_second(&c->roster);
    tool_link_second(&c->tools, clock_monotonic());
    flame_tick(&c->flames, clock_monotonic(), true);
    pipeline_part_all(c->flames.pipeline);
}

static void on_signal(evutil_socket_t number, short what, void *context) {
    (void)what;
    log_info("%s: writing what is there and ending", number == SIGTERM ? "SIGTERM" : "SIGINT");
    event_base_loopbreak(((struct collector *)context)->base);
}

// Reads the files of the secret and of TLS. What is wrong with one the log tells.
static int read_keys(const struct collector_options *o, struct secret *secret, struct tls **tls) {
    struct tls_files files = {o->tls_cert, o->tls_key, o->tls_ca};
    char secret_why[SECRET_ERROR_BYTES], tls_why[TLS_ERROR_BYTES];
    if (o->secret_file && !secret_read(o->secret_file, secret, secret_why)) {
        log_error("--secret-file %s", secret_why);
        return EXIT_USAGE;
    }
    if (o->tls_cert && !(*tls = tls_server(&files, tls_why))) {
        log_error("%s", tls_why);
        return EXIT_USAGE;
    }
    return EXIT_SUCCESS;
}

static bool exports(const struct collector_options *o) {
    return o->export_to && strcmp(o->export_to, COLLECTOR_EXPORT_NONE) != 0;
}

// The export's password, "" without a file of one. Wipe it.
static int read_password(const struct collector_options *o,
                         char password[LIMIT_EXPORT_PASSWORD_BYTES + 1]) {
    char why[SECRET_ERROR_BYTES];
    password[0] = 0;
    if (!exports(o) || !o->export_password_file) {
        return EXIT_SUCCESS;
    }
    if (!secret_read_password(o->export_password_file, password, why)) {
        log_error("--export-password-file %s", why);
        return EXIT_USAGE;
    }
    return EXIT_SUCCESS;
}

// What SIGHUP has read again. Wipe it: forget_renewed.
struct renewed {
    struct secret secret;
    struct tls *tls;
    char password[LIMIT_EXPORT_PASSWORD_BYTES + 1];
    char headers[LIMIT_OTLP_HEADERS_BYTES + 1];
};

static bool read_renewed(const struct collector_options *o, struct renewed *r) {
    return read_keys(o, &r->secret, &r->tls) == EXIT_SUCCESS &&
           read_password(o, r->password) == EXIT_SUCCESS &&
           otlp_link_headers(o, r->headers) == EXIT_SUCCESS;
}

// The keys of the server are taken last: nothing can go wrong with these.
static bool take_renewed(struct collector *c, struct renewed *r) {
    char why[OTLP_WHY_BYTES];
    if ((c->exporter && !exporter_renew(c->exporter, r->password[0] ? r->password : NULL)) ||
        (c->otlp && !otlp_renew(c->otlp, r->headers[0] ? r->headers : NULL, why))) {
        return false;
    }
    server_set_keys(c->server, r->secret.len > 0 ? &r->secret : NULL, r->tls);
    tls_free(c->tls);
    c->tls = r->tls;
    r->tls = NULL;
    return true;
}

static void forget_renewed(struct renewed *r) {
    secret_clear(&r->secret);
    tls_free(r->tls);
    explicit_bzero(r, sizeof *r);
}

// SIGHUP: a certificate was renewed, or a secret, password or header changed. All of it, or
// nothing.
static void on_reload(evutil_socket_t number, short what, void *context) {
    (void)number;
    (void)what;
    struct collector *c = context;
    struct renewed r = {0};
    if (read_renewed(c->options, &r) && take_renewed(c, &r)) {
        log_info("SIGHUP: secret and certificates are read again, for connections to come%s%s",
                 r.password[0] ? ", and the export's password" : "",
                 r.headers[0] ? ", and the headers for OTLP" : "");
    } else {
        log_error("SIGHUP: secret and certificates stay as they were");
    }
    forget_renewed(&r);
}

static bool has_files_to_read_again(const struct collector_options *o) {
    return o->secret_file || o->tls_cert || exports(o) || o->otlp_headers_file;
}

static bool start_events(struct collector *c) {
    const struct {
        int64_t ns;
        event_callback_fn call;
    } timers[] = {{TICK_MS * 1000000LL, on_tick},
                  {c->options->flush_ns, on_flush},
                  {PING_SECONDS * 1000000000LL, on_ping},
                  {SECOND_NS, on_second},
                  {service_watchdog_us() * 1000, on_watchdog}};
    for (size_t i = 0; i < sizeof timers / sizeof *timers && timers[i].ns > 0; i++) {
        struct timeval every = {timers[i].ns / 1000000000, timers[i].ns % 1000000000 / 1000};
        c->timers[i] = event_new(c->base, -1, EV_PERSIST, timers[i].call, c);
        if (!c->timers[i] || event_add(c->timers[i], &every) != 0) {
            return false;
        }
    }
    const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    // without files to read, SIGHUP does what it always does
    size_t count = has_files_to_read_again(c->options) ? 3 : 2;
    for (size_t i = 0; i < count; i++) {
        c->signals[i] =
            evsignal_new(c->base, numbers[i], numbers[i] == SIGHUP ? on_reload : on_signal, c);
        if (!c->signals[i] || event_add(c->signals[i], NULL) != 0) {
            return false;
        }
    }
    return true;
}

static void stop_events(struct collector *c) {
    for (size_t i = 0; i < sizeof c->timers / sizeof *c->timers; i++) {
        if (c->timers[i]) {
            event_free(c->timers[i]);
        }
    }
    for (size_t i = 0; i < sizeof c->signals / sizeof *c->signals; i++) {
        if (c->signals[i]) {
            event_free(c->signals[i]);
        }
    }
}

// -- start and end --------------------------------------------------------------------------------

static int open_outputs(struct collector *c) {
    const struct collector_options *o = c->options;
    struct stat st;
    if (o->record && (stat(o->record, &st) != 0 || !S_ISDIR(st.st_mode))) {
        log_error("--record %s: not a folder", o->record);
        return EXIT_USAGE;
    }
    // identities may tell of people
    int fd =
        o->stats_log ? open(o->stats_log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (o->stats_log && (fd < 0 || !(c->stats_log = fdopen(fd, "a")))) {
        log_error("--stats-log %s: %s", o->stats_log, strerror(errno));
        return EXIT_USAGE;
    }
    return EXIT_SUCCESS;
}

// Whether changes are marked for an export, from now on or still.
static int follow(struct collector *c) {
    const char *to = c->options->export_to;
    bool none = to && strcmp(to, COLLECTOR_EXPORT_NONE) == 0;
    if (!(none ? store_unfollow(c->store) : !to || store_follow(c->store))) {
        log_error("%s: %s", c->options->db, store_error(c->store));
        return EXIT_DATABASE;
    }
    if (!to && store_followed(c->store)) {
        log_info("%s: was exported before; what changes is still marked for that, until "
                 "--export " COLLECTOR_EXPORT_NONE,
                 c->options->db);
    }
    return EXIT_SUCCESS;
}

static int open_store(struct collector *c) {
    char error[STORE_ERROR_BYTES];
    enum store_status status = store_open(c->options->db, &c->store, error);
    if (status == STORE_OK) {
        int followed = follow(c);
        return followed == EXIT_SUCCESS ? otlp_link_follow(c->store, c->options) : followed;
    }
    log_error("%s", error);
    return status == STORE_FOREIGN || status == STORE_NEWER || status == STORE_OLDER
               ? EXIT_FOREIGN
               : EXIT_DATABASE;
}

// On a socket that systemd opened for us, where there is one; --listen does not count then.
static int take_socket(struct collector *c, const struct server_options *options,
                       const struct server_events *events) {
    const char *why = "";
    char address[LISTEN_ADDRESS_BYTES];
    uint16_t port;
    int fd = service_socket(address, &port, &why);
    if (fd >= 0 && !listen_address_loopback(address) && !options->secret) {
        log_error("the socket handed over listens on %s: other machines can connect there, so "
                  "--secret-file "
                  "FILE is required",
                  address);
        return EXIT_USAGE;
    }
    c->server = fd >= 0 ? server_new_on(c->base, fd, options, events, &why) : NULL;
    if (!c->server) {
        log_error("cannot listen: %s", why);
        return EXIT_LISTEN;
    }
    snprintf(c->address, sizeof c->address, "%s", address);
    return EXIT_SUCCESS;
}

static int open_server(struct collector *c) {
    const char *why = "";
    struct server_events events = shim_link_events(&c->links);
    struct server_options listen = {.address = c->address,
                                    .port = c->options->port,
                                    .secret = c->secret.len > 0 ? &c->secret : NULL,
                                    .tls = c->tls};
    if (service_activated()) {
        return take_socket(c, &listen, &events);
    }
    snprintf(c->address, sizeof c->address, "%s", c->options->address);
    c->server = server_new(c->base, &listen, &events, &why);
    if (c->server) {
        return EXIT_SUCCESS;
    }
    log_error("cannot listen on %s:%u: %s; choose another port with --listen", c->address,
              c->options->port, why);
    return EXIT_LISTEN;
}

// To the log, and to who started us.
static void tell_ready(struct collector *c) {
    char state[256];
    log_info("kprof-collector " KPROF_VERSION " listening on %s:%u, writing to %s", c->address,
             server_port(c->server), c->options->db);
    if (!listen_address_loopback(c->address) && !c->tls) {
        log_warning("without --tls-cert what nodes send to %s can be read on the way", c->address);
    }
    snprintf(state, sizeof state, "READY=1\nSTATUS=Listening on %s:%u", c->address,
             server_port(c->server));
    service_notify(state);
}

// Pipelines, as many as threads are wanted, and those threads: one alone is fed by the event
// loop's.
static bool make_ingests(struct collector *c) {
    struct pipeline_options options = {.names = c->names,
                                       .bucket_s = c->options->bucket_s,
                                       .timeout_ns = c->options->timeout_ns,
                                       .shared = true,
                                       .identify = shim_link_identify,
                                       .disarm = shim_link_disarm,
                                       .stale = shim_link_stale,
                                       .calls = shim_link_calls,
                                       .slow = shim_link_slow};
    struct shim_links *links = &c->links;
    for (uint32_t i = 0; i < c->options->threads; i++) {
        struct shim_ingest *ingest = &links->ingests[links->ingest_count];
        struct pipeline *pipeline = pipeline_new(&options);
        if (!pipeline) {
            return false;
        }
        *ingest = (struct shim_ingest){.links = links, .pipeline = pipeline};
        links->ingest_count++;
        c->spares[i] = pipeline_stats_new(pipeline);
        if (!c->spares[i]) {
            return false;
        }
        pipeline_tick(pipeline, (struct pipeline_now){clock_wall(), clock_monotonic()});
    }
    for (uint32_t i = 0; c->options->threads > 1 && i < links->ingest_count; i++) {
        struct shim_ingest *ingest = &links->ingests[i];
        ingest->intake =
            intake_start(c->base, pipeline_gate(ingest->pipeline), shim_links_say, ingest);
        if (!ingest->intake) {
            return false;
        }
    }
    return true;
}

static void free_ingests(struct collector *c) {
    for (uint32_t i = 0; i < c->links.ingest_count; i++) {
        intake_stop(c->links.ingests[i].intake);
    }
    for (uint32_t i = 0; i < c->links.ingest_count; i++) {
        pipeline_free(c->links.ingests[i].pipeline);
        stats_free(c->spares[i]);
    }
    pipeline_names_free(c->names);
}

static bool make_parts(struct collector *c) {
    struct writer_options writing = {.bucket_s = (uint32_t)c->options->bucket_s};
    c->base = event_base_new();
    c->names = pipeline_names_new(c->options->threads);
    c->links = (struct shim_links){.roster = &c->roster,
                                   .steering = tool_link_steering(&c->tools),
                                   .flames = &c->flames,
                                   .record = {c->options->record, c->options->record_values},
                                   .slow_ns = c->options->slow_threshold_ns};
    if (!c->base || !c->names || !make_ingests(c)) {
        return false;
    }
    struct pipeline *one = c->links.ingests[0].pipeline;
    c->flames.pipeline = c->flames.runs.pipeline = one;
    c->tools = (struct tool_links){
        .pipeline = one, .shims = &c->links, .roster = &c->roster, .flames = &c->flames};
    c->writer = writer_start(c->store, &writing);
    c->tools.writer = c->flames.writer = c->links.writer = c->writer;
    c->page = (struct page){.control = {.tools = &c->tools, .runs = {.tools = &c->tools}},
                            .tls = &c->tls,
                            .roster = &c->roster,
                            .sampling = &c->flames.runs,
                            .pipeline = one,
                            .writer = c->writer};
    c->tools.database = realpath(c->options->db, c->database);
    return c->writer && start_events(c);
}

// The password goes from its file to the exporter, and is wiped here.
static int start_export(struct collector *c) {
    const struct collector_options *o = c->options;
    char name[EXPORT_NAME_BYTES] = "", why[EXPORT_WHY_BYTES];
    char password[LIMIT_EXPORT_PASSWORD_BYTES + 1];
    if (!exports(o)) {
        return EXIT_SUCCESS;
    }
    int status = read_password(o, password);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    if (o->export_ca && access(o->export_ca, R_OK) != 0) {
        log_error("--export-ca %s: %s", o->export_ca, strerror(errno));
        return EXIT_USAGE;
    }
    gethostname(name, sizeof name - 1);
    const struct export_options options = {.url = o->export_to,
                                           .password = password[0] ? password : NULL,
                                           .ca = o->export_ca,
                                           // a host without a name has to be given one
                                           .name = o->export_as              ? o->export_as
                                                   : export_name_valid(name) ? name
                                                                             : "unnamed",
                                           .cluster = o->export_cluster,
                                           .database = o->db};
    c->exporter = exporter_start(&options, c->writer, why);
    c->tools.exporter = c->page.exporter = c->exporter;
    explicit_bzero(password, sizeof password);
    if (!c->exporter) {
        log_error("--export: %s", why);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static int start_otlp(struct collector *c) {
    int status = otlp_link_start(c->options, c->writer, &c->otlp);
    c->tools.otlp = c->page.otlp = c->otlp;
    return status;
}

static void stop_export(struct collector *c) {
    exporter_stop(c->exporter);
    c->exporter = c->tools.exporter = c->page.exporter = NULL;
    otlp_stop(c->otlp);
    c->otlp = c->tools.otlp = c->page.otlp = NULL;
}

// Closes the streams and writes everything. Returns false when something could not be written.
static bool finish(struct collector *c) {
    service_notify("STOPPING=1");
    c->links.shutting_down = true;
    server_free(c->server);
    c->server = NULL;
    if (c->writer) {
        pipeline_visit_all(c->flames.pipeline);
        flames_end(&c->flames);
        pipeline_part_all(c->flames.pipeline);
    }
    bool written = !c->writer || writer_wait(c->writer);
    if (!written) { // what came since then waits behind it: once more, for both
        writer_retry(c->writer);
        written = writer_wait(c->writer);
    }
    if (c->writer && written) {
        flush(c);
        written = writer_wait(c->writer);
    }
    stop_export(c); // which needs the writer
    written = writer_stop(c->writer) && written;
    c->writer = c->links.writer = NULL;
    return written;
}

int collector_run(const struct collector_options *options) {
    struct collector c = {.options = options, .lines = buffer_make(LINES_BYTES)};
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
    hash_seed();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a file that may not get longer is an error, like a full disk
    int status = read_keys(options, &c.secret, &c.tls);
    if (status == EXIT_SUCCESS) {
        status = open_outputs(&c);
    }
    if (status == EXIT_SUCCESS) {
        status = open_store(&c);
    }
    if (status == EXIT_SUCCESS && !make_parts(&c)) {
        log_error("out of memory");
        status = EXIT_FAILURE;
    }
    if (status == EXIT_SUCCESS) {
        status = open_server(&c);
    }
    if (status == EXIT_SUCCESS) {
        c.page.listen_address = c.address;
        c.page.listen_port = server_port(c.server);
        status = page_open(&c.page, c.base, options);
    }
    if (status == EXIT_SUCCESS) {
        status = start_export(&c);
    }
    if (status == EXIT_SUCCESS) {
        status = start_otlp(&c);
    }
    if (status == EXIT_SUCCESS) {
        struct server_events tools = tool_link_events(&c.tools);
        server_take_tools(c.server, &tools);
        tell_ready(&c);
        if (event_base_dispatch(c.base) < 0) {
            log_error("the event loop failed");
            status = EXIT_FAILURE;
        }
    }
    if (c.server && !finish(&c)) {
        status = EXIT_FAILURE;
    }
    page_close(&c.page);
    stop_export(&c);
    writer_stop(c.writer);
    stop_events(&c);
    server_free(c.server);
    roster_free(&c.roster);
    free_ingests(&c);
    store_close(c.store);
    if (c.base) {
        event_base_free(c.base);
    }
    if (c.stats_log) {
        fclose(c.stats_log);
    }
    buffer_free(&c.lines);
    secret_clear(&c.secret);
    tls_free(c.tls);
    log_settle(true);
    return status;
}
