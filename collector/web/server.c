// SPDX-License-Identifier: Apache-2.0
#include "web/web.h"

#include <errno.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/listen_address.h"
#include "base/open_files.h"
#include "codec/json.h"
#include "report/reader.h"
#include "store/mirror.h"
#include "web/access.h"
#include "web/answers.h"
#include "web/assets.h"
#include "web/control.h"
#include "web/event_streams.h"
#include "web/login.h"
#include "web/metrics.h"
#include "web/patience.h"
#include "web/reply.h"

static const char TOO_MANY[] = "too many questions at a time; try again";

// A question that is with the reader.
struct pending {
    struct reader_job job;
    struct web *web;
    bool gzip; // who asked takes it, and once it is worked out: the answer stands behind it
    struct evhttp_request *req; // NULL: who asked is gone
    const struct address *address;
    struct answer answer;
};

struct web {
    struct web_options options;
    struct access_rules rules;
    struct event_base *base;
    struct evhttp *http;
    struct evconnlistener *listener; // evhttp's
    struct event *seconds;           // looks whether there is room again, and who takes too long
    struct patience *patience;
    int most_files;
    uint16_t port;
    struct reader *reader;
    struct outbox *outbox;
    struct event_streams *streams;
    uint32_t scrapes; // copies of the meters that are being written
    struct control_desk desk;
    int ready;           // eventfd: the reader has answers
    struct event *wakes; // on it
};

// -- connections ----------------------------------------------------------------------------------

// How many files the process may have open before the page takes no more connections: the rest is
// for shims. evhttp does not tell when a connection ends; the lowest free descriptor tells how many
// files are open.
static int files_for_all(void) {
    const uint64_t others = LIMIT_CONNECTIONS + LIMIT_OTHER_FILES;
    uint64_t files = open_files_allow(others + LIMIT_WEB_CONNECTIONS);
    return files > others + LIMIT_OTHER_FILES ? (int)(files - others) : LIMIT_OTHER_FILES;
}

static bool has_room(const struct web *web) {
    int lowest = dup(web->ready);
    close(lowest);
    return lowest >= 0 && lowest < web->most_files;
}

static void on_second(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    struct web *web = context;
    patience_end(web->patience);
    if (web->listener && has_room(web)) {
        evconnlistener_enable(web->listener);
    }
}

// At the cap nobody else is accepted until somebody goes; they wait in the kernel.
static struct bufferevent *make_connection(struct event_base *base, void *context) {
    struct web *web = context;
    if (!has_room(web)) {
        evconnlistener_disable(web->listener);
    }
    struct bufferevent *bev = web->options.secure ? web->options.secure(base, -1, web->options.arg)
                                                  : bufferevent_socket_new(base, -1, 0);
    if (bev) {
        patience_begin(web->patience, bev);
    }
    return bev;
}

// -- the API --------------------------------------------------------------------------------------

static void work(struct reader_job *job, struct store *store) {
    struct pending *p = (struct pending *)job;
    struct answer *a = &p->answer;
    a->status = 200;
    if (!store && !a->meters) { // what was counted is told whatever becomes of the file
        a->status = 503;
        a->why = job->error;
        return;
    }
    const char *clusters = a->params.cluster;
    if (store && !store_choose_clusters(store, *clusters ? clusters : NULL)) {
        a->status = 500;
        a->why = store_error(store);
    } else {
        p->address->work(store, a);
    }
    if (a->status != 200 && a->why != job->error) { // of the connection, which others use next
        snprintf(job->error, sizeof job->error, "%s", a->why);
        a->why = job->error;
    } else if (a->out.failed) {
        a->status = 500;
        a->why = "the answer is too large, or memory is out: ask for less";
    } else {
        p->gzip = p->gzip && reply_gzip(&a->out);
    }
}

static void give_back(struct pending *p) {
    buffer_free(&p->answer.out);
    p->web->scrapes -= p->answer.meters != NULL;
    meters_free(p->answer.meters);
    free(p);
}

static void done(struct reader_job *job) {
    struct pending *p = (struct pending *)job;
    struct answer *a = &p->answer;
    if (p->req) {
        evhttp_connection_set_closecb(evhttp_request_get_connection(p->req), NULL, NULL);
        if (a->status == 200) {
            reply_answer(p->req, a->type ? a->type : REPLY_JSON, &a->out, p->gzip, p->web->outbox);
        } else {
            reply_error(p->req, a->status, a->why);
        }
    }
    give_back(p);
}

static void on_gone(struct evhttp_connection *connection, void *context) {
    (void)connection;
    struct pending *p = context;
    reply_abandon(p->req);
    p->req = NULL;
}

// Reads the question, and takes what its answer needs of the collector. 0, or the status of an
// error.
static int prepare(struct web *web, struct pending *p, char why[PARAMS_WHY_BYTES]) {
    if (!params_parse(evhttp_uri_get_query(evhttp_request_get_evhttp_uri(p->req)),
                      clock_wall() / 1000000000, &p->answer.params, why)) {
        return 400;
    }
    if (p->address->work == metrics_work && web->scrapes >= LIMIT_SCRAPES) {
        snprintf(why, PARAMS_WHY_BYTES, "%s", TOO_MANY);
        return 503;
    }
    if (!metrics_copy(&web->options, p->req, p->address, &p->answer)) {
        snprintf(why, PARAMS_WHY_BYTES, "no memory");
        return 500;
    }
    web->scrapes += p->answer.meters != NULL;
    return 0;
}

static void ask(struct web *web, struct evhttp_request *req, const struct address *address,
                int64_t id) {
    char why[PARAMS_WHY_BYTES];
    struct pending *p = calloc(1, sizeof *p);
    if (!p) {
        reply_error(req, 500, "no memory");
        return;
    }
    *p = (struct pending){.job = {.work = work, .done = done},
                          .web = web,
                          .gzip = reply_takes_gzip(req),
                          .req = req,
                          .address = address};
    p->answer = (struct answer){.id = id,
                                .out = buffer_make(LIMIT_WEB_ANSWER_BYTES),
                                .status = 503, // unless it is worked out
                                .why = p->job.error};
    int status = prepare(web, p, why);
    if (status != 0) {
        reply_error(req, status, why);
        give_back(p);
        return;
    }
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_gone, p);
    if (!reader_ask(web->reader, &p->job)) {
        evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
        reply_error(req, 503, TOO_MANY);
        give_back(p);
    }
}

static void on_ready(evutil_socket_t fd, short what, void *context) {
    (void)what;
    eventfd_t count;
    eventfd_read(fd, &count);
    reader_settle(((struct web *)context)->reader);
}

static void wake(void *context) {
    eventfd_write(((struct web *)context)->ready, 1);
}

// -- requests -------------------------------------------------------------------------------------

static bool is_get(struct evhttp_request *req) {
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    return method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD;
}

// What everybody may see.
static bool answer_open(struct web *web, struct evhttp_request *req, const char *path) {
    if (strcmp(path, "/healthz") == 0) {
        reply_send(req, &(struct reply){.status = 200,
                                        .type = REPLY_JSON,
                                        .body = slice_text("{\"status\":\"ok\"}\n")});
        return true;
    }
    if (strcmp(path, "/readyz") == 0 && is_get(req)) {
        int64_t none;
        ask(web, req, address_find(path, &none), 0);
        return true;
    }
    if (strcmp(path, "/login") == 0 && web->rules.token &&
        evhttp_request_get_command(req) == EVHTTP_REQ_POST) {
        login_take(&web->rules, web->options.secure != NULL, req);
        return true;
    }
    const struct asset *asset = assets_find(path);
    if (asset && asset->open && is_get(req)) {
        reply_file(req, asset->type, asset->file);
        return true;
    }
    return false;
}

static void put_state(const struct web *web, struct json *j) {
    json_key(j, "collector");
    json_bool(j, web->options.state);
    json_key(j, "control");
    json_bool(j, web->options.order);
    if (web->options.state) {
        web->options.state(web->options.arg, j);
    }
}

static void put_sampling(const struct web *web, struct json *j) {
    json_key(j, "runs");
    json_open(j, '[');
    if (web->options.sampling) {
        web->options.sampling(web->options.arg, j);
    }
    json_close(j, ']');
}

// What is known now, without the database.
static void answer_now(struct web *web, struct evhttp_request *req,
                       void (*put)(const struct web *web, struct json *j)) {
    struct buffer out = buffer_make(LIMIT_WEB_ANSWER_BYTES);
    struct json j = json_make(&out);
    json_open(&j, '{');
    put(web, &j);
    json_close(&j, '}');
    buffer_text(&out, "\n");
    if (out.failed) {
        reply_error(req, 500, "the answer is too large, or memory is out");
    } else {
        bool gzip = reply_takes_gzip(req) && reply_gzip(&out);
        reply_answer(req, REPLY_JSON, &out, gzip, web->outbox);
    }
    buffer_free(&out);
}

static void answer_known(struct web *web, struct evhttp_request *req, const char *path) {
    const struct asset *asset = assets_find(path);
    int64_t id = 0;
    const struct address *address = address_find(path, &id);
    if (asset) {
        reply_file(req, asset->type, asset->file);
    } else if (strcmp(path, "/api/v1/events") == 0) {
        event_streams_open(web->streams, req);
    } else if (strcmp(path, "/api/v1/state") == 0) {
        answer_now(web, req, put_state);
    } else if (strcmp(path, "/api/v1/sampling") == 0) {
        answer_now(web, req, put_sampling);
    } else if (address) {
        ask(web, req, address, id);
    } else {
        reply_error(req, 404, "there is nothing here; the page is at /");
    }
}

static void on_request(struct evhttp_request *req, void *context) {
    struct web *web = context;
    patience_heard(web->patience, req);
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
    if (!path || !*path) {
        path = "/";
    }
    if (!access_host(&web->rules, req)) {
        reply_error(req, 421, "ask for localhost: the page is for this machine alone");
    } else if (answer_open(web, req, path)) {
        return;
    } else if (!access_known(&web->rules, req)) {
        if (assets_find(path)) {
            login_ask(req);
        } else {
            reply_error(req, 401, "the token is missing or wrong: log in at /login");
        }
    } else if (!control_take(&web->desk, req, path)) {
        answer_known(web, req, path);
    }
}

// -- start and end --------------------------------------------------------------------------------

static bool listens(struct web *web, char why[WEB_ERROR_BYTES]) {
    struct evhttp_bound_socket *bound =
        evhttp_bind_socket_with_handle(web->http, web->options.address, web->options.port);
    char address[LISTEN_ADDRESS_BYTES];
    if (!bound) {
        snprintf(why, WEB_ERROR_BYTES, "cannot listen on %s:%u: %s", web->options.address,
                 web->options.port, strerror(errno));
        return false;
    }
    web->listener = evhttp_bound_socket_get_listener(bound);
    listen_address_of(evhttp_bound_socket_get_fd(bound), address, &web->port);
    return true;
}

static bool make_http(struct web *web) {
    web->http = evhttp_new(web->base);
    if (!web->http) {
        return false;
    }
    evhttp_set_allowed_methods(web->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
                                              EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                              EVHTTP_REQ_PATCH | EVHTTP_REQ_OPTIONS); // 405
    evhttp_set_max_headers_size(web->http, LIMIT_WEB_HEAD_BYTES);
    evhttp_set_max_body_size(web->http, LIMIT_WEB_BODY_BYTES);
    evhttp_set_timeout(web->http, LIMIT_WEB_SECONDS);
    evhttp_set_default_content_type(web->http, NULL);
    evhttp_set_bevcb(web->http, make_connection, web);
    evhttp_set_gencb(web->http, on_request, web);
    return true;
}

static bool make_reader(struct web *web) {
    struct reader_options reading = {.path = web->options.db,
                                     .open = web->options.open,
                                     .from = web->options.from,
                                     .threads = LIMIT_READER_THREADS,
                                     .limit_ns = LIMIT_READER_SECONDS * 1000000000LL,
                                     .wake = wake,
                                     .arg = web};
    web->ready = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    web->wakes = web->ready < 0
                     ? NULL
                     : event_new(web->base, web->ready, EV_READ | EV_PERSIST, on_ready, web);
    if (!web->wakes || event_add(web->wakes, NULL) != 0) {
        return false;
    }
    web->seconds = event_new(web->base, -1, EV_PERSIST, on_second, web);
    if (!web->seconds || event_add(web->seconds, &(struct timeval){1, 0}) != 0) {
        return false;
    }
    web->reader = reader_start(&reading);
    web->streams = web->reader ? event_streams_start(web->base, web->options.db) : NULL;
    return web->streams;
}

struct web *web_start(struct event_base *base, const struct web_options *options,
                      char why[WEB_ERROR_BYTES]) {
    struct web *web = calloc(1, sizeof *web);
    snprintf(why, WEB_ERROR_BYTES, "no memory");
    if (!web) {
        return NULL;
    }
    web->options = *options;
    web->desk = (struct control_desk){.options = &web->options, .rules = &web->rules};
    if (options->order && options->token.len == 0) {
        snprintf(why, WEB_ERROR_BYTES, "nothing can be ordered without a token");
        free(web);
        return NULL;
    }
    web->base = base;
    web->ready = -1;
    web->outbox = web->desk.outbox = outbox_new(LIMIT_WEB_OUTPUT_BYTES);
    web->rules = access_rules(listen_address_loopback(options->address), options->token);
    web->most_files = files_for_all();
    web->patience = patience_new(base);
    if (!web->outbox || !web->patience || !make_http(web) || !make_reader(web) ||
        !listens(web, why)) {
        web_stop(web);
        return NULL;
    }
    return web;
}

uint16_t web_port(const struct web *web) {
    return web->port;
}

void web_stop(struct web *web) {
    if (!web) {
        return;
    }
    reader_stop(web->reader); // answers what is asked
    control_end_all(&web->desk);
    event_streams_stop(web->streams);
    if (web->http) {
        evhttp_free(web->http);
    }
    if (web->seconds) {
        event_free(web->seconds);
    }
    patience_free(web->patience);
    outbox_close(web->outbox);
    if (web->wakes) {
        event_free(web->wakes);
    }
    if (web->ready >= 0) {
        close(web->ready);
    }
    free(web);
}
