#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text_time.h"
#include "tool/attach.h"
#include "tool/command.h"

enum { CONFIG_BYTES = 1 << 20, DEFAULT_PORT = 4711, MOST_ONE_IN = 0x7fffffff, CHUNK = 65536 };

const char attach_help[] =
    "usage: kprof attach NODE [--tier NAME=M:F/A]... [--entry M:F/A] [OPTIONS]\n"
    "       kprof attach NODE --config FILE [OPTIONS]\n"
    "\n"
    "Traces the running Erlang or Elixir node NODE (name@host, as node() says in it; without @host one on "
    "this\n"
    "host) until Ctrl-C, TERM or the end of --for, and takes everything back out of it. The node needs "
    "nothing\n"
    "but OTP 25 or newer with runtime_tools; this host needs no Erlang. When NODE restarts, tracing starts "
    "again.\n"
    "When this command is killed, the node takes kprof out by itself within 10 s.\n"
    "\n"
    "  --collector HOST:PORT  where the collector listens, as seen from NODE (default: 127.0.0.1:4711)\n"
    "  --secret-file FILE     the secret that the collector was given too\n"
    "  --tls                  NODE reaches the collector through TLS, and verifies its certificate with its system's\n"
    "                         authorities\n"
    "  --tls-ca FILE          likewise, with the authorities in FILE\n"
    "  --cookie-file FILE     a file with the node's cookie, readable by its owner only (default:\n"
    "                         ~/.erlang.cookie); the cookie never stands on a command line\n"
    "  --tier NAME=M:F/A      time the calls of this function as a tier; give it for every tier\n"
    "  --entry M:F/A          each call of this function is a request; without it the application must mark "
    "its\n"
    "                         requests (kprof:do_apply/3)\n"
    "  --identity M:F/A:N     argument N (1 is the first) of this call names the request; or an Erlang fun "
    "as text,\n"
    "                         'fun({shop_http, handle, [Route | _]}) -> Route; (_) -> undefined end'\n"
    "  --sample N             trace one request in N\n"
    "  --config FILE          the options of kprof:start_trace/1 as Erlang terms, each or one list of them "
    "ended by\n"
    "                         a full stop; they are evaluated on NODE. What is given besides goes before "
    "them\n"
    "  --for TIME             end after this time, such as 60s or 5m\n"
    "  --json                 what is shown as a JSON object a line\n"
    "\n"
    "M:F/A is shop_http:handle/2, 'my mod':'do it'/2, or as Elixir writes it: MyApp.Repo.all/2, "
    ":ets.lookup/2.\n"
    "\n"
    "Exit status\n"
    "  0 ended as told, or by kprof detach      5 the node's OTP is older than 25\n"
    "  1 something else                         6 what is to be traced is wrong\n"
    "  2 wrong usage                            7 the node does not load the shim\n"
    "  3 the node is not up, or is gone         8 the collector is not there, or no trace port\n"
    "  4 wrong cookie, or no cookie file        9 traced already by somebody else\n";

// -- what detach reads, too -------------------------------------------------------------------------------

int attach_read_node(const char *command, const char *node, const char *cookie_file, struct node_name *name,
                     char cookie[COOKIE_BYTES]) {
    char host[256];
    struct dist_error e;
    if (gethostname(host, sizeof host) != 0) {
        strcpy(host, "localhost");
    }
    host[sizeof host - 1] = 0;
    host[strcspn(host, ".")] = 0;
    if (!node_name_parse(node, host, name)) {
        return command_fail(command, EXIT_USAGE,
                            "%s is no name of a node: want name@host, as node() says in it", node);
    }
    return cookie_read(cookie_file, cookie, &e) ? EXIT_SUCCESS
                                                : command_fail(command, (int)e.status, "%s", e.text);
}

const char *attach_own_name(void) {
    static char name[40]; // the prefix is known to kprof_attach:leave/1
    snprintf(name, sizeof name, "kprof_attach_%ld", (long)getpid());
    return name;
}

// -- values -----------------------------------------------------------------------------------------------

static int wrong(const char *option, const char *text, const char *want) {
    return command_fail("attach", EXIT_USAGE, "--%s %s: want %s", option, text, want);
}

static int take_collector(struct attach_options *o, const char *text) {
    const char *colon = strrchr(text, ':');
    int64_t port = 0;
    size_t len = colon ? (size_t)(colon - text) : 0;
    if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof o->host || !command_number(colon + 1, UINT16_MAX, &port)) {
        return wrong("collector", text, "HOST:PORT, such as 127.0.0.1:4711");
    }
    memcpy(o->host, text, len);
    o->host[len] = 0;
    o->trace.host = o->host;
    o->trace.port = (uint16_t)port;
    return EXIT_SUCCESS;
}

// NAME=M:F/A, the name cut off in place
static int take_tier(struct attach_options *o, char *text) {
    char *equals = strchr(text, '=');
    if (o->trace.tier_count == SHIM_TIERS) {
        return wrong("tier", text, "fewer tiers");
    }
    struct shim_tier *tier = &o->tiers[o->trace.tier_count];
    if (!equals || equals == text || !mfa_parse(equals + 1, &tier->mfa)) {
        return wrong("tier", text,
                     "NAME=MODULE:FUNCTION/ARITY, such as db=my_db:query/2 or db=MyApp.Repo.all/2");
    }
    *equals = 0;
    tier->name = text;
    o->trace.tiers = o->tiers;
    o->trace.tier_count++;
    return EXIT_SUCCESS;
}

static int take_entry(struct attach_options *o, const char *text) {
    if (!mfa_parse(text, &o->entry)) {
        return wrong("entry", text, "MODULE:FUNCTION/ARITY");
    }
    o->trace.entry = &o->entry;
    return EXIT_SUCCESS;
}

static int take_identity(struct attach_options *o, const char *text) {
    if (strncmp(text, "fun", 3) == 0 && strchr(" (", text[3])) {
        o->trace.identity_fun = text;
        return EXIT_SUCCESS;
    }
    if (!mfa_parse_argument(text, &o->identity, &o->trace.identity_argument)) {
        return wrong("identity", text, "MODULE:FUNCTION/ARITY:ARGUMENT, or fun(...) -> ... end");
    }
    o->trace.identity = &o->identity;
    return EXIT_SUCCESS;
}

static int take_number(struct attach_options *o, const char *text) {
    int64_t n;
    if (!command_number(text, MOST_ONE_IN, &n)) {
        return wrong("sample", text, "a number from 1 on");
    }
    o->trace.one_in = (uint32_t)n;
    return EXIT_SUCCESS;
}

static int take_secret(struct attach_options *o, const char *path) {
    char why[SECRET_ERROR_BYTES];
    if (!secret_read(path, &o->secret, why)) {
        return command_fail("attach", DIST_CONFIG, "--secret-file %s", why);
    }
    o->trace.secret = secret_slice(&o->secret);
    return EXIT_SUCCESS;
}

static int read_text(const char *name, const char *what, struct buffer *text);

static int take_tls_ca(struct attach_options *o, const char *path) {
    buffer_reset(&o->tls_ca);
    o->tls_ca_name = path;
    int status = read_text(path, "the authorities", &o->tls_ca);
    o->trace.tls = true;
    o->trace.tls_ca = slice_of(o->tls_ca.data, o->tls_ca.len);
    return status;
}

static int take(struct attach_options *o, int option) {
    switch (option) {
    case 'S':
        return take_secret(o, optarg);
    case 'A':
        return take_tls_ca(o, optarg);
    case 'T':
        o->trace.tls = true;
        break;
    case 'c':
        return take_collector(o, optarg);
    case 't':
        return take_tier(o, optarg);
    case 'e':
        return take_entry(o, optarg);
    case 'i':
        return take_identity(o, optarg);
    case 's':
        return take_number(o, optarg);
    case 'F':
        return text_duration_parse(optarg, &o->for_ns) && o->for_ns > 0
                   ? EXIT_SUCCESS
                   : wrong("for", optarg, "a time such as 60s");
    case 'f':
        o->config_name = optarg;
        break;
    default:
        o->json = true;
    }
    return EXIT_SUCCESS;
}

// -- the whole --------------------------------------------------------------------------------------------

// Reads a file that `what` names.
static int read_text(const char *name, const char *what, struct buffer *text) {
    ssize_t n = 1;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    errno = fd < 0 ? errno : 0;
    while (fd >= 0 && n > 0 && !text->failed) {
        uint8_t *to = buffer_reserve(text, CHUNK);
        n = to ? read(fd, to, CHUNK) : -1;
        buffer_grow(text, n > 0 ? (size_t)n : 0);
    }
    int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (text->failed || text->len > CONFIG_BYTES) {
        return command_fail("attach", DIST_CONFIG, "%s %s is longer than 1 MB", what, name);
    }
    if (fd < 0 || n < 0) {
        return command_fail("attach", DIST_CONFIG, "cannot read %s %s: %s", what, name, strerror(why));
    }
    return text->len > 0 ? EXIT_SUCCESS : command_fail("attach", DIST_CONFIG, "%s %s is empty", what, name);
}

static int read_config(struct attach_options *o) {
    int status = read_text(o->config_name, "the configuration file", &o->config);
    o->trace.config = slice_of(o->config.data, o->config.len);
    return status;
}

static int check(struct attach_options *o) {
    char why[TLS_ERROR_BYTES];
    if (o->trace.tls && !(o->tls = tls_client(&(struct tls_files){.ca = o->tls_ca_name}, why))) {
        return command_fail("attach", DIST_CONFIG, "%s", why);
    }
    if (o->config_name && o->trace.tier_count > 0) {
        return command_fail("attach", EXIT_USAGE,
                            "--config and --tier exclude each other: the file names the tiers");
    }
    if (!o->config_name && o->trace.tier_count == 0 && !o->trace.entry) {
        return command_fail("attach", EXIT_USAGE,
                            "what is to be traced? Say --tier, --entry or --config (--help tells more)");
    }
    if (!o->config_name && !o->trace.host) {
        return take_collector(o, "127.0.0.1:4711");
    }
    return o->config_name ? read_config(o) : EXIT_SUCCESS;
}

int attach_options_read(int argc, char **argv, struct attach_options *o) {
    static const struct option options[] = {
        {"collector", required_argument, NULL, 'c'},
        {"secret-file", required_argument, NULL, 'S'},
        {"tls", no_argument, NULL, 'T'},
        {"tls-ca", required_argument, NULL, 'A'},
        {"cookie-file", required_argument, NULL, 'k'},
        {"tier", required_argument, NULL, 't'},
        {"entry", required_argument, NULL, 'e'},
        {"identity", required_argument, NULL, 'i'},
        {"sample", required_argument, NULL, 's'},
        {"config", required_argument, NULL, 'f'},
        {"for", required_argument, NULL, 'F'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    const char *cookie_file = NULL;
    int status = EXIT_SUCCESS;
    int c;
    memset(o, 0, sizeof *o);
    o->config = buffer_make(CONFIG_BYTES + CHUNK);
    o->tls_ca = buffer_make(CONFIG_BYTES + CHUNK);
    opterr = 0;
    optind = 0; // glibc: start over, also when another command line was parsed in this process
    while (status == EXIT_SUCCESS && (c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (c == 'k') {
            cookie_file = optarg;
        } else {
            status = c == '?' || c == ':' ? command_bad_option(argv, c) : take(o, c);
        }
    }
    if (status == EXIT_SUCCESS && argc - optind != 1) {
        status = command_fail("attach", EXIT_USAGE,
                              argc == optind ? "which node? Say name@host (--help tells more)"
                                             : "one node at a time (--help tells more)");
    }
    status = status == EXIT_SUCCESS ? check(o) : status;
    return status == EXIT_SUCCESS ? attach_read_node("attach", argv[optind], cookie_file, &o->node, o->cookie)
                                  : status;
}

void attach_options_free(struct attach_options *o) {
    explicit_bzero(o->cookie, sizeof o->cookie);
    buffer_free(&o->config);
    buffer_free(&o->tls_ca);
    secret_clear(&o->secret);
    tls_free(o->tls);
}
