// SPDX-License-Identifier: Apache-2.0
#include <event2/event.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "net/secret.h"
#include "net/tls.h"
#include "store/store.h"
#include "tool/command.h"
#include "tool/source.h"
#include "web/web.h"

const char serve_help[] =
    "usage: kprof serve --db FILE [OPTIONS]\n"
    "       kprof serve --from URL [OPTIONS]\n"
    "\n"
    "Serves the page, for browsers, of a database alone, without a collector, until Ctrl-C.\n"
    "Where a collector runs, kprof-collector --http serves the same.\n"
    "\n"
    "  --db FILE               the database that kprof-collector writes, or has written\n"
    "  --http [ADDR:]PORT      where to listen (default: 4712 of loopback)\n"
    "  --http-token-file FILE  who opens the page must know the token in FILE; demanded when ADDR\n"
    "                          is not loopback\n"
    "  --http-plain            allow ADDR other than loopback without TLS: for a proxy in front\n"
    "  --tls-cert FILE         speak TLS (1.2 or newer), with the certificates in FILE\n"
    "  --tls-key FILE          the first one's key\n"
    "\n" SOURCE_HELP "\n"
    "Exit status: 0 ended by a signal, 1 something broke or no database, 2 when the command line\n"
    "is wrong, 3 the port cannot be had.\n";

struct options {
    struct source source;
    const char *token_file, *cert, *key;
    char address[LISTEN_ADDRESS_BYTES];
    uint16_t port;
    bool plain;
};

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    char why[LISTEN_WHY_BYTES];
    if (source_take(&o->source, option, value)) {
        return EXIT_SUCCESS;
    }
    switch (option) {
    case 't':
        o->token_file = value;
        break;
    case 'c':
        o->cert = value;
        break;
    case 'k':
        o->key = value;
        break;
    case 'p':
        o->plain = true;
        break;
    default:
        if (!listen_address_parse(value, o->address, &o->port, why)) {
            return command_fail("serve", EXIT_USAGE, "--http %s: %s", value, why);
        }
    }
    return EXIT_SUCCESS;
}

static int check(const struct options *o) {
    char why[WEB_ERROR_BYTES];
    if (!o->cert != !o->key) {
        return command_fail("serve", EXIT_USAGE, "%s is missing",
                            o->cert ? "--tls-key FILE" : "--tls-cert FILE");
    }
    return web_may_listen(o->address, o->token_file, o->cert, o->plain, why)
               ? EXIT_SUCCESS
               : command_fail("serve", EXIT_USAGE, "--http %s: %s", o->address, why);
}

static void on_signal(evutil_socket_t number, short what, void *base) {
    (void)number;
    (void)what;
    event_base_loopbreak(base);
}

static struct bufferevent *secure(struct event_base *base, evutil_socket_t fd, void *tls) {
    return tls_accept(tls, base, fd);
}

static enum store_status open_source(const void *from, struct store **out,
                                     char error[STORE_ERROR_BYTES]) {
    return source_open_store(from, out, error);
}

static int run(const struct web_options *options, const char *of) {
    char why[WEB_ERROR_BYTES];
    int status = EXIT_FAILURE;
    struct event_base *base = event_base_new();
    struct event *ends[2] = {0};
    const int numbers[2] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2 && base; i++) {
        ends[i] = evsignal_new(base, numbers[i], on_signal, base);
        event_add(ends[i], NULL);
    }
    struct web *web = base ? web_start(base, options, why) : NULL;
    if (web) {
        fprintf(stderr, "the page of %s is at http%s://%s:%u/; Ctrl-C ends\n", of,
                options->secure ? "s" : "", options->address, web_port(web));
        status = event_base_dispatch(base) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    } else {
        status = command_fail("serve", EXIT_LISTEN, "%s", base ? why : "no memory");
    }
    web_stop(web);
    for (int i = 0; i < 2; i++) {
        if (ends[i]) {
            event_free(ends[i]);
        }
    }
    if (base) {
        event_base_free(base);
    }
    return status;
}

// Whether it is a database that can be read, so that mistakes are told at once.
static int try_source(const struct source *source) {
    struct store *store;
    int status = source_open("serve", source, &store);
    if (status == EXIT_SUCCESS) {
        store_close(store);
    }
    return status;
}

int serve_main(int argc, char **argv) {
    static const struct option longs[] = {SOURCE_OPTIONS,
                                          {"http", required_argument, NULL, 'h'},
                                          {"http-token-file", required_argument, NULL, 't'},
                                          {"http-plain", no_argument, NULL, 'p'},
                                          {"tls-cert", required_argument, NULL, 'c'},
                                          {"tls-key", required_argument, NULL, 'k'},
                                          {NULL, 0, NULL, 0}};
    struct options o = {.address = "127.0.0.1", .port = 4712};
    struct secret token = {0};
    char why[SECRET_ERROR_BYTES], tls_why[TLS_ERROR_BYTES];
    struct tls *tls = NULL;
    int status = command_options(argc, argv, longs, take, &o);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 0) : status;
    status = status == EXIT_SUCCESS ? source_check("serve", &o.source) : status;
    status = status == EXIT_SUCCESS ? check(&o) : status;
    status = status == EXIT_SUCCESS ? try_source(&o.source) : status;
    if (status == EXIT_SUCCESS && o.token_file && !secret_read(o.token_file, &token, why)) {
        status = command_fail("serve", EXIT_USAGE, "--http-token-file %s", why);
    }
    struct tls_files files = {o.cert, o.key, NULL};
    if (status == EXIT_SUCCESS && o.cert && !(tls = tls_server(&files, tls_why))) {
        status = command_fail("serve", EXIT_USAGE, "%s", tls_why);
    }
    if (status == EXIT_SUCCESS) {
        hash_seed();
        signal(SIGPIPE, SIG_IGN);
        status = run(&(struct web_options){.address = o.address,
                                           .port = o.port,
                                           .db = o.source.db,
                                           .open = open_source,
                                           .from = &o.source,
                                           .token = secret_slice(&token),
                                           .secure = tls ? secure : NULL,
                                           .arg = tls},
                     o.source.name);
    }
    secret_clear(&token);
    tls_free(tls);
    return status;
}
