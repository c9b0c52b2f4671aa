// SPDX-License-Identifier: Apache-2.0
// The HTTP server over real sockets: who may ask, what is answered, and how much of it.
#include "store_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "codec/json.h"
#include "web/reply.h"
#include "web/web.h"

enum { NOON = 1763640000 };
static const char TOKEN[] = "0123456789abcdef0123456789abcdef";

static struct event_base *base;
static struct web *web;

static void *loop(void *arg) {
    (void)arg;
    event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static pthread_t thread;

static struct web_options control; // what a collector adds to the options

static void start(const char *address, const char *token) {
    char why[WEB_ERROR_BYTES];
    struct web_options options = control;
    options.address = address;
    options.db = fixture_db;
    options.token = slice_text(token);
    base = event_base_new();
    web = web_start(base, &options, why);
    if (!web) {
        fail_msg("%s", why);
    }
    assert_int_equal(pthread_create(&thread, NULL, loop, NULL), 0);
}

static void end(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    (void)arg;
    event_base_loopbreak(base);
}

static void stop(void) {
    event_base_once(base, -1, EV_TIMEOUT, end, NULL, &(struct timeval){0, 0});
    // the loop of the other thread sleeps until something happens
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(web_port(web)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    connect(fd, (struct sockaddr *)&to, sizeof to);
    pthread_join(thread, NULL);
    close(fd);
    web_stop(web);
    event_base_free(base);
}

static int dial(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(web_port(web)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

// What comes until the other side closes, or until `until` stands in it.
static char *hear(int fd, const char *until) {
    static char heard[1 << 20];
    size_t len = 0;
    heard[0] = 0;
    while (len < sizeof heard - 1 && !(until && strstr(heard, until))) {
        struct pollfd ready = {fd, POLLIN, 0};
        assert_int_equal(poll(&ready, 1, 60000), 1);
        ssize_t n = recv(fd, heard + len, sizeof heard - 1 - len, 0);
        if (n <= 0) {
            break;
        }
        len += (size_t)n;
        heard[len] = 0;
    }
    return heard;
}

static char *say(const char *request) {
    int fd = dial();
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    char *heard = hear(fd, NULL);
    close(fd);
    return heard;
}

static char *get(const char *path, const char *headers) {
    char request[1024];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n%sConnection: close\r\n\r\n", path,
             headers);
    return say(request);
}

#define LOCAL "Host: localhost:4712\r\n"

// The same on loopback with one header more.
__attribute__((format(printf, 2, 3))) static char *get_with(const char *path, const char *format,
                                                            ...) {
    char headers[400] = LOCAL;
    size_t len = strlen(headers);
    va_list args;
    va_start(args, format);
    vsnprintf(headers + len, sizeof headers - len, format, args);
    va_end(args);
    return get(path, headers);
}

static void expect(const char *heard, const char *status, const char *has) {
    if (strncmp(heard + 9, status, 3) != 0 || !strstr(heard, has)) {
        fail_msg("expected %s and \"%s\" in:\n%.2000s", status, has, heard);
    }
}

static void write_some(const char *identity) {
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, identity, "_total", 1000000, false);
    fixture_call(batch, NOON, identity, "db", 600000, false);
    fixture_ledger(batch, NOON)->requests_complete = 1;
    struct kept_request kept = fixture_request(NOON, identity, KEPT_OVER, 1000000, 2);
    fixture_keep(batch, &kept);
    fixture_write(batch);
}

static void test_answers(void **state) {
    (void)state;
    write_some("<script>alert(1)</script>");
    start("127.0.0.1", "");
    expect(get("/healthz", LOCAL), "200", "\"status\":\"ok\"");
    expect(get("/readyz", LOCAL), "200", "\"status\":\"ready\"");
    expect(get("/metrics", LOCAL), "404", "a database alone has no counters");
    expect(get("/api/v1/nodes", LOCAL), "200", "\"nodes\":[\"shop@host\"]");
    expect(get("/api/v1/table?from=1763640000&until=1763640010", LOCAL), "200",
           "\"tiers\":[\"db\"]");
    expect(get("/api/v1/series?from=1763640000&until=1763640010", LOCAL), "200",
           "\"requests\":[1]");
    expect(get("/api/v1/compare?from=1763640000&until=1763640010", LOCAL), "200",
           "\"calls_before\":0,\"calls_after\":1");
    expect(get("/api/v1/compare?from=1763640000&until=1763640010&tier=db", LOCAL), "200",
           "\"before\":{\"from\":null");
    expect(get("/api/v1/paths?from=1763640000&until=1763640010", LOCAL), "200",
           "\"requests\":1,\"paths\":[]");
    char *list = get("/api/v1/slow?from=1763640000&until=1763640010", LOCAL);
    expect(list, "200", "\"id\":1");
    assert_non_null(strstr(list, "Content-Type: application/json"));
    assert_non_null(strstr(list, "nosniff"));
    assert_non_null(strstr(list, "default-src 'none'"));
    expect(get("/api/v1/slow/1", LOCAL), "200", "\"spans\"");
    expect(get("/api/v1/slow/2", LOCAL), "404", "no such request");
    expect(get("/api/v1/slow/1x", LOCAL), "404", "nothing here");
    expect(get("/api/v1/slow/99999999999999999999", LOCAL), "404", "nothing here");
    expect(get("/api/v1/profiles", LOCAL), "200", "\"profiles\":[]");
    expect(get("/api/v1/table?from=x", LOCAL), "400", "from: want a whole number");
    expect(get("/api/v1/table?identity='%20OR%201=1--", LOCAL), "200", "\"rows\":[]");
    expect(get("/../../etc/passwd", LOCAL), "404", "nothing here");
    expect(get("/api/v1/%2e%2e/nodes", LOCAL), "404", "nothing here");
    expect(get("/api/v1/nodes", LOCAL "Accept-Encoding: gzip\r\n"), "200", "nodes"); // too short
    stop();
}

// The page's files: kept by browsers, behind gzip for those that take it.
static void test_files(void **state) {
    (void)state;
    char etag[100];
    start("127.0.0.1", "");
    expect(get("/", LOCAL), "200", "src=\"/page.js\"");
    expect(get("/?node=a&view=slow", LOCAL), "200", "src=\"/page.js\"");
    expect(get("/index.html", LOCAL), "404", "nothing here");
    char *heard = get("/page.js", LOCAL "Accept-Encoding: gzip, br\r\n");
    expect(heard, "200", "Content-Encoding: gzip");
    char *at = strstr(heard, "ETag: ");
    assert_non_null(at);
    snprintf(etag, sizeof etag, "%.*s", (int)strcspn(at + 6, "\r"), at + 6);
    expect(get_with("/page.js", "If-None-Match: %s\r\n", etag), "304", "ETag");
    expect(get_with("/page.css", "If-None-Match: %s\r\n", etag), "200", "text/css");
    stop();
}

static void test_who_may_ask(void **state) {
    (void)state;
    write_some("create");
    start("127.0.0.1", "");
    expect(get("/api/v1/nodes", "Host: 127.0.0.1\r\n"), "200", "nodes");
    expect(get("/api/v1/nodes", "Host: 127.8.8.8:1\r\n"), "200", "nodes");
    expect(get("/api/v1/nodes", "Host: [::1]:4712\r\n"), "200", "nodes");
    const char *const others[] = {"Host: evil.example\r\n",
                                  "Host: localhost.evil.example\r\n",
                                  "Host: 10.0.0.1\r\n",
                                  "Host: [::2]\r\n",
                                  "Host: []\r\n",
                                  "Host: [\r\n",
                                  "Host: \r\n",
                                  "Host: 127.0.0.1.evil.example\r\n",
                                  ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        expect(get("/api/v1/nodes", others[i]), "421", "ask for localhost");
    }
    expect(say("POST /api/v1/nodes HTTP/1.1\r\n" LOCAL
               "Content-Length: 0\r\nConnection: close\r\n\r\n"),
           "405", "only GET");
    expect(
        say("POST /login HTTP/1.1\r\n" LOCAL "Content-Length: 5\r\nConnection: close\r\n\r\ntoken"),
        "405", "only GET"); // there is no token, and so no login
    stop();
}

static void test_token(void **state) {
    (void)state;
    write_some("create");
    start("127.0.0.1", TOKEN);
    char header[400], cookie[200];
    expect(get("/healthz", LOCAL), "200", "ok");
    expect(get("/api/v1/nodes", LOCAL), "401", "log in at /login");
    expect(get("/api/v1/events", LOCAL), "401", "log in at /login");
    expect(get("/", LOCAL), "303", "Location: /login");
    expect(get("/page.js", LOCAL), "303", "Location: /login");
    expect(get("/login", LOCAL), "200", "<form");
    expect(get("/page.css", LOCAL), "200", "text/css");
    expect(get_with("/api/v1/nodes", "Authorization: Bearer %s\r\n", TOKEN), "200", "nodes");
    expect(get_with("/api/v1/nodes", "Authorization: Bearer %sx\r\n", TOKEN), "401", "token");
    expect(say("POST /login HTTP/1.1\r\n" LOCAL
               "Content-Length: 7\r\nConnection: close\r\n\r\ntoken=x"),
           "303", "Location: /login?wrong");
    snprintf(header, sizeof header,
             "POST /login HTTP/1.1\r\n" LOCAL
             "Content-Length: %zu\r\nConnection: close\r\n\r\ntoken=%s",
             6 + strlen(TOKEN), TOKEN);
    char *heard = say(header);
    expect(heard, "303", "Location: /\r\n");
    char *at = strstr(heard, "Set-Cookie: kprof=");
    assert_non_null(at);
    assert_non_null(strstr(at, "HttpOnly; SameSite=Strict"));
    assert_null(strstr(heard, TOKEN));
    at += strlen("Set-Cookie: ");
    snprintf(cookie, sizeof cookie, "%.*s", (int)strcspn(at, ";"), at);
    expect(get_with("/api/v1/nodes", "Cookie: other=1; %s\r\n", cookie), "200", "nodes");
    expect(get_with("/api/v1/nodes", "Cookie: x%s\r\n", cookie), "401", "token");
    cookie[strlen(cookie) - 1] ^= 1;
    expect(get_with("/api/v1/nodes", "Cookie: %s\r\n", cookie), "401", "token");
    stop();
}

// Where the form leads to after the right token; target: as the form's address has it.
static void leads(const char *target, const char *expected) {
    char request[6000], location[2100];
    snprintf(request, sizeof request,
             "POST /login%s HTTP/1.1\r\n" LOCAL
             "Content-Length: %zu\r\nConnection: close\r\n\r\ntoken=%s",
             target, 6 + strlen(TOKEN), TOKEN);
    snprintf(location, sizeof location, "Location: %s\r\n", expected);
    expect(say(request), "303", location);
}

// A link that was opened without a login is what comes after it, and nothing of other hosts is.
static void test_login_leads_back(void **state) {
    (void)state;
    write_some("create");
    start("127.0.0.1", TOKEN);
    expect(get("/?node=a%40b&last=60", LOCAL), "303",
           "Location: /login?to=%2F%3Fnode%3Da%2540b%26last%3D60\r\n");
    leads("?to=%2F%3Fnode%3Da%2540b%26last%3D60", "/?node=a%40b&last=60");
    leads("", "/");
    leads("?to=%2F", "/");
    static const char *const others[] = {
        "?to=http%3A%2F%2Fevil.example%2F",
        "?to=%2F%2Fevil.example%2F",
        "?to=%2F%5Cevil.example%2F",
        "?to=%2F%09%2Fevil.example",
        "?to=%2F%0D%0ASet-Cookie%3A%20a%3Db",
        "?to=%5C%5Cevil.example",
        "?to=javascript%3Aalert(1)",
        "?to=evil.example",
        "?to=%2Flogin%3Fto%3D%2F",
        "?to=",
        "?to",
        "?wrong=1",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        leads(others[i], "/");
    }
    char longest[3000] = "?to=%2F";
    memset(longest + strlen(longest), 'a', 2500);
    leads(longest, "/");
    expect(say("POST /login?to=%2F%3Fslow%3D1 HTTP/1.1\r\n" LOCAL
               "Content-Length: 7\r\nConnection: close\r\n\r\ntoken=x"),
           "303", "Location: /login?wrong=1&to=%2F%3Fslow%3D1\r\n");
    stop();
}

static void test_too_much(void **state) {
    (void)state;
    write_some("create");
    start("127.0.0.1", "");
    static char large[LIMIT_WEB_HEAD_BYTES + 4096];
    size_t len = (size_t)snprintf(large, sizeof large, "GET / HTTP/1.1\r\n" LOCAL "X: ");
    memset(large + len, 'a', sizeof large - len - 5);
    memcpy(large + sizeof large - 5, "\r\n\r\n", 5);
    char *heard = say(large);
    assert_true(strncmp(heard, "HTTP/1.1 4", 10) == 0 || !*heard);
    char body[200];
    snprintf(body, sizeof body, "POST /login HTTP/1.1\r\n" LOCAL "Content-Length: %u\r\n\r\n",
             LIMIT_WEB_BODY_BYTES + 1);
    heard = say(body);
    assert_true(strncmp(heard, "HTTP/1.1 4", 10) == 0 || !*heard);
    expect(get("/healthz", LOCAL), "200", "ok");
    stop();
}

// An event stream tells of what is written; who leaves in the middle disturbs nobody.
static void test_events(void **state) {
    (void)state;
    static const char request[] = "GET /api/v1/events HTTP/1.1\r\n" LOCAL "\r\n";
    write_some("create");
    start("127.0.0.1", "");
    int left = dial(), stays = dial();
    assert_true(send(left, request, sizeof request - 1, 0) > 0);
    assert_true(send(stays, request, sizeof request - 1, 0) > 0);
    assert_non_null(strstr(hear(left, "retry:"), "text/event-stream"));
    assert_non_null(strstr(hear(stays, "retry:"), "text/event-stream"));
    close(left);
    write_some("create");
    assert_non_null(strstr(hear(stays, "event: written"), "event: written"));
    close(stays);
    // who asks and does not wait for the answer
    for (int i = 0; i < 20; i++) {
        int fd = dial();
        static const char ask[] =
            "GET /api/v1/table?from=0&until=9999999999 HTTP/1.1\r\n" LOCAL "\r\n";
        assert_true(send(fd, ask, sizeof ask - 1, 0) > 0);
        close(fd);
    }
    expect(get("/healthz", LOCAL), "200", "ok");
    stop();
}

// Who asks for much and does not read it: the next one is refused until there is room again.
static void answer_large(struct evhttp_request *req, void *context) {
    struct buffer body = buffer_make(16 << 20);
    assert_non_null(buffer_reserve(&body, 16 << 20));
    memset(body.data, ' ', 16 << 20);
    buffer_grow(&body, 16 << 20);
    reply_answer(req, "text/plain", &body, false, context);
    buffer_free(&body);
}

static void test_answers_that_nobody_reads(void **state) {
    (void)state;
    struct outbox *outbox = outbox_new(40 << 20);
    struct event_base *loop_base = event_base_new();
    struct evhttp *http = evhttp_new(loop_base);
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
    struct sockaddr_in to;
    socklen_t len = sizeof to;
    evhttp_set_gencb(http, answer_large, outbox);
    assert_int_equal(getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&to, &len),
                     0);
    int fds[3];
    char heard[20] = "";
    for (int i = 0; i < 3; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&to, sizeof to), 0);
        assert_true(send(fds[i], "GET / HTTP/1.1\r\n\r\n", 18, 0) == 18);
        for (int k = 0; k < 20; k++) {
            event_base_loop(loop_base, EVLOOP_NONBLOCK);
            usleep(5000);
        }
    }
    assert_int_equal(outbox->bytes, 2 * (16 << 20));
    assert_true(recv(fds[2], heard, sizeof heard - 1, 0) > 0);
    assert_non_null(strstr(heard, " 503 "));
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
    }
    evhttp_free(http);
    event_base_free(loop_base);
    assert_int_equal(outbox->bytes, 0);
    outbox_close(outbox);
}

// -- orders ---------------------------------------------------------------------------------------

static struct order ordered;
static int orders;

// Pauses are done at once, and so are looks, what else is ordered waits until the end.
static void take_order(void *arg, const struct order *order, struct web_order *from) {
    (void)arg;
    ordered = *order;
    orders++;
    if (order->kind == ORDER_PAUSE || order->kind == ORDER_TRIGGERS) {
        struct buffer done = buffer_make(100);
        buffer_text(&done, "{\"ok\":true}\n");
        web_order_answer(from, 200, &done);
    }
}

static void tell_state(void *arg, struct json *j) {
    (void)arg;
    json_key_text(j, "told", "now");
}

static void tell_sampling(void *arg, struct json *j) {
    (void)arg;
    json_text(j, "one");
}

#define BEARER LOCAL "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n"

static const char *order_request(const char *method, const char *path, const char *headers,
                                 const char *body) {
    static char request[2 * LIMIT_WEB_BODY_BYTES];
    snprintf(request, sizeof request,
             "%s %s HTTP/1.1\r\n%sConnection: close\r\nContent-Length: %zu\r\n\r\n%s", method, path,
             headers, strlen(body), body);
    return request;
}

static char *post(const char *path, const char *headers, const char *body) {
    return say(order_request("POST", path, headers, body));
}

static void test_orders(void **state) {
    (void)state;
    static const char pause[] = "/api/v1/nodes/shop%40host/pause";
    control =
        (struct web_options){.order = take_order, .state = tell_state, .sampling = tell_sampling};
    orders = 0;
    start("127.0.0.1", TOKEN);
    expect(post(pause, LOCAL, ""), "401", "token");
    expect(post(pause, BEARER, ""), "200", "{\"ok\":true}");
    assert_int_equal(ordered.kind, ORDER_PAUSE);
    assert_string_equal(ordered.node, "shop@host");
    expect(post(pause, BEARER "Origin: http://localhost:4712\r\n", ""), "200", "ok");
    expect(post(pause, BEARER "Origin: https://LOCALHOST:4712\r\n", ""), "200", "ok");
    expect(post(pause, BEARER "Sec-Fetch-Site: same-origin\r\n", ""), "200", "ok");
    expect(post(pause, BEARER "Content-Type: application/json; charset=utf-8\r\n", "{}"), "200",
           "ok");
    assert_int_equal(orders, 5);
    static const char *const others[] = {"Origin: http://evil.example\r\n",
                                         "Origin: http://localhost:4713\r\n",
                                         "Origin: null\r\n",
                                         "Origin: localhost:4712\r\n",
                                         "Origin: http://\r\n",
                                         "Sec-Fetch-Site: cross-site\r\n",
                                         "Sec-Fetch-Site: same-site\r\n",
                                         "Sec-Fetch-Site: none\r\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char headers[400];
        snprintf(headers, sizeof headers, "%s%s", BEARER, others[i]);
        expect(post(pause, headers, ""), "403", "only the page itself");
    }
    expect(post(pause, BEARER, "{}"), "415", "application/json");
    expect(post(pause, BEARER "Content-Type: text/plain\r\n", "{}"), "415", "application/json");
    expect(post(pause, BEARER "Content-Type: application/jsonx\r\n", "{}"), "415",
           "application/json");
    expect(post(pause, BEARER "Content-Type: application/json\r\n", "{\"a\":1}"), "400",
           "a: nothing");
    expect(post("/api/v1/nodes/x/dance", BEARER, ""), "405", "Allow: GET, HEAD\r\n");
    expect(post("/api/v1/table", BEARER, ""), "405", "Allow: GET, HEAD\r\n");
    expect(say(order_request("GET", pause, BEARER, "")), "405", "Allow: POST\r\n");
    expect(say(order_request("DELETE", "/api/v1/notes", BEARER, "")), "405",
           "Allow: GET, HEAD, POST\r\n");
    expect(say(order_request("PUT", "/", BEARER, "")), "405", "Allow: GET, HEAD\r\n");
    expect(get("/api/v1/state", BEARER), "200",
           "{\"collector\":true,\"control\":true,\"told\":\"now\"}");
    expect(get("/api/v1/sampling", BEARER), "200", "{\"runs\":[\"one\"]}");
    expect(get("/api/v1/sampling", LOCAL), "401", "token");
    assert_int_equal(orders, 5);
    stop();
}

// What a node is asked without an order.
static void test_looks(void **state) {
    (void)state;
    static const char triggers[] = "/api/v1/nodes/shop%40host/triggers";
    control = (struct web_options){.look = take_order}; // nothing may be ordered
    orders = 0;
    start("127.0.0.1", TOKEN);
    expect(get(triggers, LOCAL), "401", "token");
    expect(get(triggers, BEARER), "200", "{\"ok\":true}");
    assert_int_equal(ordered.kind, ORDER_TRIGGERS);
    assert_string_equal(ordered.node, "shop@host");
    expect(post(triggers, BEARER, ""), "405", "Allow: GET, HEAD\r\n");
    expect(post("/api/v1/nodes/shop%40host/triggers/add", BEARER, ""), "403", "nothing can be");
    expect(get("/api/v1/nodes/shop%40host/triggers/add", BEARER), "405", "Allow: POST\r\n");
    assert_int_equal(orders, 1);
    stop();
    control = (struct web_options){0}; // of a database alone
    start("127.0.0.1", TOKEN);
    expect(get(triggers, BEARER), "404", "a database alone");
    stop();
}

// So many wait for their answer; who goes meanwhile disturbs nobody, and the end closes the rest.
static void test_orders_that_wait(void **state) {
    (void)state;
    int fds[LIMIT_WEB_ORDERS];
    const char *resume = order_request("POST", "/api/v1/nodes/a/resume", BEARER, "");
    control = (struct web_options){.order = take_order, .state = tell_state};
    orders = 0;
    start("127.0.0.1", TOKEN);
    for (uint32_t i = 0; i < LIMIT_WEB_ORDERS; i++) {
        fds[i] = dial();
        assert_true(send(fds[i], resume, strlen(resume), 0) > 0);
    }
    for (int i = 0; i < 1000 && orders < (int)LIMIT_WEB_ORDERS; i++) {
        usleep(10000);
    }
    expect(post("/api/v1/nodes/a/resume", BEARER, ""), "503", "too many orders");
    close(fds[0]);
    expect(get("/healthz", LOCAL), "200", "ok");
    stop();
    assert_string_equal(hear(fds[1], NULL), ""); // closed
    for (uint32_t i = 1; i < LIMIT_WEB_ORDERS; i++) {
        close(fds[i]);
    }
}

static void test_no_orders(void **state) {
    (void)state;
    char why[WEB_ERROR_BYTES];
    control = (struct web_options){0};
    start("127.0.0.1", TOKEN);
    expect(post("/api/v1/nodes/a/pause", BEARER, ""), "403", "--http-allow-control");
    expect(say(order_request("PUT", "/api/v1/notes", BEARER, "")), "405", "Allow: GET, HEAD\r\n");
    expect(get("/api/v1/state", BEARER), "200", "{\"collector\":false,\"control\":false}");
    expect(get("/api/v1/sampling", BEARER), "200", "{\"runs\":[]}");
    stop();
    base = event_base_new();
    struct web_options open = {.address = "127.0.0.1", .db = fixture_db, .order = take_order};
    assert_null(web_start(base, &open, why));
    assert_non_null(strstr(why, "without a token"));
    event_base_free(base);
}

static void test_no_database(void **state) {
    (void)state;
    start("127.0.0.1", "");
    expect(get("/api/v1/nodes", LOCAL), "503", "cannot read");
    write_some("create");
    expect(get("/api/v1/nodes", LOCAL), "200", "shop@host");
    stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_files, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_who_may_ask, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_token, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_login_leads_back, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_too_much, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_events, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_orders, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_looks, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_orders_that_wait, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_no_orders, fixture_setup, fixture_teardown),
        cmocka_unit_test(test_answers_that_nobody_reads),
        cmocka_unit_test_setup_teardown(test_no_database, fixture_setup, fixture_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
