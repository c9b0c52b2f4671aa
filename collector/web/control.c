// SPDX-License-Identifier: Apache-2.0
#include "web/control.h"

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "web/answers.h"
#include "web/assets.h"
#include "web/orders.h"

struct web_order {
    struct web_order *previous, *next;
    struct control_desk *desk;
    struct evhttp_request *req; // NULL: who asked is gone
};

// -- the answer -----------------------------------------------------------------------------------

static void take_out(struct web_order *o) {
    if (o->previous) {
        o->previous->next = o->next;
    } else {
        o->desk->first = o->next;
    }
    if (o->next) {
        o->next->previous = o->previous;
    }
    o->desk->count--;
    if (o->req) {
        evhttp_connection_set_closecb(evhttp_request_get_connection(o->req), NULL, NULL);
    }
}

void web_order_answer(struct web_order *order, int status, struct buffer *body) {
    take_out(order);
    if (order->req && !body->failed && status == 200) {
        bool gzip = reply_takes_gzip(order->req) && reply_gzip(body);
        reply_answer(order->req, REPLY_JSON, body, gzip, order->desk->outbox);
    } else if (order->req && !body->failed) {
        reply_send(order->req, &(struct reply){.status = status,
                                               .type = REPLY_JSON,
                                               .body = slice_of(body->data, body->len)});
    } else if (order->req) {
        reply_error(order->req, 500, "no memory");
    }
    buffer_free(body);
    free(order);
}

void web_order_refuse(struct web_order *order, int status, const char *why) {
    take_out(order);
    if (order->req) {
        reply_error(order->req, status, why);
    }
    free(order);
}

static void on_gone(struct evhttp_connection *connection, void *context) {
    (void)connection;
    struct web_order *order = context;
    reply_abandon(order->req);
    order->req = NULL;
}

void control_end_all(struct control_desk *desk) {
    for (struct web_order *order = desk->first, *next; order; order = next) {
        next = order->next;
        web_order_refuse(order, 503, "the collector ends");
    }
}

// -- who may --------------------------------------------------------------------------------------

static const char *header(struct evhttp_request *req, const char *name) {
    return evhttp_find_header(evhttp_request_get_input_headers(req), name);
}

// Whether a browser sends it from the page itself. Programs tell neither of the two headers; a
// browser tells one of them with each POST, and no page can change what it tells.
static bool of_this_page(struct evhttp_request *req) {
    const char *site = header(req, "Sec-Fetch-Site"), *origin = header(req, "Origin"),
               *host = header(req, "Host");
    if (site && strcmp(site, "same-origin") != 0) {
        return false;
    }
    if (!origin) {
        return true;
    }
    // a proxy in front may speak another one of the two than we do
    const char *at = strncmp(origin, "https://", 8) == 0  ? origin + 8
                     : strncmp(origin, "http://", 7) == 0 ? origin + 7
                                                          : "";
    return host && *at && strcasecmp(at, host) == 0;
}

static bool is_json(struct evhttp_request *req) {
    static const char json[] = "application/json";
    const char *type = header(req, "Content-Type");
    size_t len = sizeof json - 1;
    return type && strncasecmp(type, json, len) == 0 &&
           (type[len] == 0 || type[len] == ';' || type[len] == ' ');
}

// -- orders ---------------------------------------------------------------------------------------

static void give(struct control_desk *desk, struct evhttp_request *req, const struct order *order) {
    struct web_order *o = calloc(1, sizeof *o);
    if (!o) {
        reply_error(req, 500, "no memory");
        return;
    }
    *o = (struct web_order){.next = desk->first, .desk = desk, .req = req};
    if (o->next) {
        o->next->previous = o;
    }
    desk->first = o;
    desk->count++;
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_gone, o);
    (order->kind == ORDER_TRIGGERS ? desk->options->look : desk->options->order)(desk->options->arg,
                                                                                 order, o);
}

// What nodes are asked by GET: no more than state tells.
static void look(struct control_desk *desk, struct evhttp_request *req, const struct order *order) {
    if (!desk->options->look) {
        reply_error(req, 404, "a database alone is served here, which knows no nodes");
    } else if (desk->count >= LIMIT_WEB_ORDERS) {
        reply_error(req, 503, "too many orders at a time; try again");
    } else {
        give(desk, req, order);
    }
}

static void take(struct control_desk *desk, struct evhttp_request *req, struct order *order) {
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    uint8_t body[LIMIT_WEB_BODY_BYTES];
    char why[ORDER_WHY_BYTES];
    size_t len = evbuffer_get_length(in);
    if (!desk->options->order) {
        reply_error(req, 403,
                    "nothing can be ordered here: kprof-collector allows it with "
                    "--http-allow-control and --http-token-file FILE");
    } else if (!desk->rules->token) { // no server is started so
        reply_error(req, 403, "nothing can be ordered without a token");
    } else if (!of_this_page(req)) {
        reply_error(req, 403,
                    "only the page itself may order something: Origin is another one. A proxy in "
                    "front has to hand the header Host on as it is");
    } else if (len > sizeof body) {
        reply_error(req, 413, "the body is too long");
    } else if (len > 0 && !is_json(req)) {
        reply_error(req, 415, "want Content-Type: application/json");
    } else if (desk->count >= LIMIT_WEB_ORDERS) {
        reply_error(req, 503, "too many orders at a time; try again");
    } else {
        evbuffer_copyout(in, body, len);
        if (order_parse(order, slice_of(body, len), why)) {
            give(desk, req, order);
        } else {
            reply_error(req, 400, why);
        }
    }
}

static void refuse_method(struct evhttp_request *req, bool get, bool post) {
    evhttp_add_header(evhttp_request_get_output_headers(req), "Allow",
                      get && post ? "GET, HEAD, POST"
                      : post      ? "POST"
                                  : "GET, HEAD");
    reply_error(req, 405,
                get && post ? "only GET and POST are answered here"
                : post      ? "only POST is answered here"
                            : "only GET is answered here");
}

bool control_take(struct control_desk *desk, struct evhttp_request *req, const char *path) {
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    bool gets = method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD;
    struct order order;
    int64_t id;
    bool orders = order_find(path, &order);
    bool looks = orders && order.kind == ORDER_TRIGGERS;
    bool shown = assets_find(path) || address_find(path, &id) || !orders;
    if (gets && shown) {
        return false;
    }
    if (looks && gets) {
        look(desk, req, &order);
    } else if (looks) {
        refuse_method(req, true, false);
    } else if (orders && method == EVHTTP_REQ_POST) {
        take(desk, req, &order);
    } else {
        refuse_method(req, shown, orders && (desk->options->order || !shown));
    }
    return true;
}
