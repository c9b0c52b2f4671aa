// SPDX-License-Identifier: Apache-2.0
// kprof attach: brings the shim into a node, watches, takes it out.
#include "tool/attach/attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "tool/attach/screen.h"
#include "tool/command.h"
#include "tool/node.h"
#include "tool/own.h"
#include "tool/text.h"

enum { MS = 1000000, SILENCE_S = 10, TURN_MS = 100 };

static const int64_t SECOND = 1000000000;
static const int64_t WORD_NS = 2000000000;  // between two words to the shim
static const int64_t RETRY_NS = 1000000000; // between two tries to come back
enum { PROBE_MS = 1000 };

struct attach {
    struct attach_options *o;
    struct dist_node node;
    char shown[NODE_TEXT_BYTES]; // its name, with its short host
    bool attached;
    enum shim_state state;
    int64_t word_ns; // when the shim last heard us; while not attached, when we last tried
    int64_t end_ns;  // 0: no end
    char told[1024]; // why the last try failed
    struct own own;  // its collector, when it has one of its own
    bool settled;    // which collector it is has been found out
    bool watched;    // it has been in the node
    struct screen screen;
};

// -- signals --------------------------------------------------------------------------------------

// The first one ends the trace, another Ctrl-C this process; before anything is in the node, the
// first one does.

static int stop_fd = -1;
static volatile sig_atomic_t stops;
static volatile sig_atomic_t entered; // something of ours may be in the node

static void on_stop(int signal) {
    static const uint64_t one = 1;
    static const char hasty[] =
        "\nkprof attach: left at once; the node takes kprof out by itself within 10 s\n";
    int before = errno;
    if (!entered) {
        _exit(128 + signal);
    }
    if (stops++ > 0) {
        if (signal != SIGINT) { // timeout(1) sends TERM twice
            return;
        }
        if (write(STDERR_FILENO, hasty, sizeof hasty - 1) >= 0) {
            _exit(EXIT_FAILURE);
        }
        _exit(EXIT_FAILURE);
    }
    if (write(stop_fd, &one, sizeof one) < 0) {
        _exit(EXIT_FAILURE);
    }
    errno = before;
}

static bool catch_signals(void) {
    struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART},
                     ignore = {.sa_handler = SIG_IGN};
    struct sigaction hangup;
    stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return stop_fd >= 0 && sigaction(SIGINT, &stop, NULL) == 0 &&
           sigaction(SIGTERM, &stop, NULL) == 0 &&
           // nohup
           sigaction(SIGHUP, NULL, &hangup) == 0 &&
           (hangup.sa_handler == SIG_IGN || sigaction(SIGHUP, &stop, NULL) == 0) &&
           sigaction(SIGPIPE, &ignore, NULL) == 0;
}

// -- what is told ---------------------------------------------------------------------------------

// A line on stderr, where it does not mix with the numbers.
__attribute__((format(printf, 2, 3))) static void say(struct attach *a, const char *format, ...) {
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_clean(line); // names and reasons come from the node
    screen_hide(&a->screen);
    fprintf(stderr, "%s\n", line);
    screen_show(&a->screen);
}

static void say_warnings(struct attach *a, char *lines) {
    char *next;
    for (char *line = strtok_r(lines, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
        say(a, "warning: %s", line);
    }
}

static void say_state(struct attach *a) {
    static const char *const what[] = {
        [SHIM_TRACING] = "tracing again",
        [SHIM_WAITING] = "the collector is lost; tracing goes on when it is back",
        [SHIM_TRIPPED] = "tripped: more trace messages than its trace port takes; it tries again",
        [SHIM_PAUSED] = "paused with kprof trace, until kprof trace resumes it",
        [SHIM_IDLE] = "tracing was stopped, starting it again",
        [SHIM_GONE] = "kprof was taken out of it",
    };
    say(a, "%s: %s", a->shown, what[a->state]);
}

// -- its collector --------------------------------------------------------------------------------

static bool has_own(const struct attach *a) {
    return a->own.db != NULL;
}

// Whether a collector answers where one is by default; it may refuse us.
static bool default_answers(struct attach *a) {
    struct client_options to = a->o->reach.to;
    struct client_error e;
    to.timeout_ms = PROBE_MS;
    struct client *c = client_open(&to, &e);
    client_close(c);
    return c || e.fault != CLIENT_ABSENT;
}

// Where a collector of its own listens: --listen, in which the address may be missing or all of
// them.
static void put_listen(const struct attach *a, const char *here, char out[REACH_AT_BYTES]) {
    const char *listen = a->o->listen ? a->o->listen : "0";
    bool whole = strchr(listen, ':') != NULL;
    snprintf(out, REACH_AT_BYTES, "%s%s%s", whole ? "" : here, whole ? "" : ":", listen);
}

static bool begin_own(struct attach *a, struct dist_error *e) {
    char here[INET_ADDRSTRLEN], listen[REACH_AT_BYTES], why[CHILD_LINE_BYTES];
    static char at[REACH_AT_BYTES + INET_ADDRSTRLEN]; // reach points to it
    struct reach *r = &a->o->reach;
    own_address_of(a->node.channel.fd, here);
    put_listen(a, here, listen);
    struct own_options options = {a->o->db ? a->o->db : OWN_DATABASE, listen, r->secret_file};
    if (!own_begin(&a->own, &options, why)) {
        return dist_fail(e, DIST_TRACE, "no collector of its own: %s", why);
    }
    bool all = strncmp(a->own.at, "0.0.0.0:", 8) == 0;
    snprintf(at, sizeof at, "%s%s", all ? here : "", all ? strrchr(a->own.at, ':') : a->own.at);
    r->collector = at;
    r->secret_file = r->secret_file ? r->secret_file : a->own.secret.file;
    return attach_options_reach(a->o) == EXIT_SUCCESS ||
           dist_fail(e, DIST_TRACE, "no collector of its own");
}

// Finds out which collector it is, and has it run. The default one is on this host's loopback:
// nodes on other hosts do not reach that.
static bool settle(struct attach *a, struct dist_error *e) {
    char here[INET_ADDRSTRLEN];
    struct attach_options *o = a->o;
    if (!a->settled && o->either && o->config_name) {
        o->either = !shim_names_collector(&a->node, o->trace.config);
    }
    bool own =
        o->db || (o->either && (!own_address_of(a->node.channel.fd, here) || !default_answers(a)));
    a->settled = a->settled || !own || begin_own(a, e);
    return a->settled;
}

static void say_collector(struct attach *a) {
    const char *at = a->o->reach.collector;
    char here[INET_ADDRSTRLEN];
    if (has_own(a)) {
        say(a, "running a collector at %s, which writes %s", at, a->own.db);
        if (!own_address_of(a->node.channel.fd, here)) {
            say(a,
                "warning: what is traced can be read on the way from %s to here; --collector names "
                "a collector with TLS",
                a->shown);
        }
    } else if (a->o->either) {
        say(a, "using the collector at " REACH_DEFAULT);
    }
}

// -- getting in and out ---------------------------------------------------------------------------

static void take_out(struct attach *a) {
    struct shim_told told;
    struct dist_error ignored;
    shim_leave(&a->node, true, &told, &ignored);
}

static bool start(struct attach *a, struct dist_error *e) {
    struct shim_told told;
    entered = 1;
    if (!shim_enter(&a->node, &told, e)) {
        return false;
    }
    if (strcmp(told.line, "again") != 0) {
        bool first = !a->settled;
        if (!settle(a, e) || !shim_start(&a->node, &a->o->trace, &told, e)) {
            take_out(a);
            return false;
        }
        if (first) {
            say_collector(a);
        }
        say(a, "tracing %s: %s", a->shown, told.line);
        say_warnings(a, told.warnings);
    } else {
        say(a, "tracing %s again", a->shown);
    }
    a->attached = true;
    // what was there when we came is no mistake when the node has just begun anew
    a->o->trace.wait = true;
    a->state = SHIM_TRACING;
    a->told[0] = 0;
    return true;
}

static bool begin(struct attach *a, struct dist_error *e) {
    a->word_ns = clock_monotonic();
    if (!dist_node_connect(&a->node, &a->o->node, attach_own_name(), a->o->cookie,
                           ATTACH_CONNECT_MS, e)) {
        return false;
    }
    node_short(a->node.name.full, a->shown);
    if (!start(a, e)) {
        dist_node_disconnect(&a->node);
        return false;
    }
    a->word_ns = clock_monotonic();
    return true;
}

static int finish(struct attach *a) {
    struct shim_told told;
    struct dist_error e;
    int broken = a->screen.broken == EPIPE ? 0 : a->screen.broken; // who read it has enough
    screen_close(&a->screen);
    int status = broken ? command_fail("attach", EXIT_FAILURE, "cannot write the output: %s",
                                       strerror(broken))
                        : EXIT_SUCCESS;
    if (!a->attached) {
        return status;
    }
    if (!shim_leave(&a->node, true, &told, &e)) {
        dist_node_disconnect(&a->node);
        return command_fail("attach", (int)e.status,
                            "%s; if kprof is still in the node, it leaves by itself within %d s",
                            e.text, SILENCE_S);
    }
    dist_node_disconnect(&a->node);
    say(a, "kprof is out of %s", a->shown);
    return status;
}

// -- watching -------------------------------------------------------------------------------------

static void lost(struct attach *a) {
    dist_node_disconnect(&a->node);
    a->attached = false;
    say(a, "%s is gone, waiting for it", a->shown);
}

static void begin_again(struct attach *a) {
    struct dist_error e;
    if (!begin(a, &e) && e.status != DIST_DOWN && strcmp(a->told, e.text) != 0) {
        snprintf(a->told, sizeof a->told, "%s", e.text);
        say(a, "%s", e.text);
    }
}

// Gives our word. False when somebody has taken kprof out, and us with it.
static bool word(struct attach *a) {
    struct dist_error e;
    enum shim_state before = a->state;
    bool unheard =
        // this host slept: then it has left by itself
        clock_monotonic() - a->word_ns > SILENCE_S * SECOND;
    if (!shim_word(&a->node, &a->state, &e)) {
        lost(a);
        return true;
    }
    a->word_ns = clock_monotonic();
    if (a->state != before) {
        say_state(a);
    }
    if (a->state == SHIM_IDLE || (a->state == SHIM_GONE && unheard)) {
        if (!start(a, &e)) {
            say(a, "%s", e.text);
            dist_node_disconnect(&a->node);
            a->attached = false;
        }
        return true;
    }
    return a->state != SHIM_GONE;
}

static int64_t earlier(int64_t a, int64_t b) {
    return b != 0 && b < a ? b : a;
}

// Waits until something is to be done. False when it is the end.
static bool wait_for_work(struct attach *a) {
    int64_t now = clock_monotonic();
    int64_t next = earlier(a->word_ns + (a->attached ? WORD_NS : RETRY_NS), a->end_ns);
    struct pollfd fds[] = {{.fd = stop_fd, .events = POLLIN},
                           {.fd = a->attached ? a->node.channel.fd : -1, .events = POLLIN}};
    int ms = next > now ? (int)((next - now) / MS) + 1 : 0;
    int n = poll(fds, 2, a->screen.to.host && ms > TURN_MS ? TURN_MS : ms);
    if (n > 0 && fds[1].revents != 0 && !channel_serve(&a->node.channel)) {
        lost(a);
    }
    const char *why =
        a->attached ? screen_turn(&a->screen, a->node.name.full, clock_monotonic()) : NULL;
    if (why) {
        say(a, "no live numbers: %s", why);
    }
    char ignored[CHILD_LINE_BYTES];
    bool collector = !has_own(a) || own_runs(&a->own, ignored);
    return stops == 0 && collector && a->screen.broken == 0 &&
           (a->end_ns == 0 || clock_monotonic() < a->end_ns);
}

// Has a collector of its own write what there is.
static int end_own(struct attach *a, int status) {
    char why[CHILD_LINE_BYTES];
    if (a->watched && !own_runs(&a->own, why)) {
        return command_fail("attach", DIST_TRACE, "its collector has ended: %s", why);
    }
    if (!own_end(&a->own, !a->watched, why)) {
        return command_fail("attach", EXIT_FAILURE, "its collector could not write everything: %s",
                            why);
    }
    if (a->watched) {
        say(a, "%s holds what was traced; kprof report --db FILE shows it", a->own.db);
    }
    return status;
}

static int watch(struct attach *a) {
    while (wait_for_work(a)) {
        bool due = clock_monotonic() - a->word_ns >= (a->attached ? WORD_NS : RETRY_NS);
        if (due && !a->attached) {
            begin_again(a);
        } else if (due && !word(a)) {
            dist_node_disconnect(&a->node);
            a->attached = false;
            break;
        }
    }
    return finish(a);
}

// Completes what the command line says of the collector by what the node has read in the
// configuration.
static bool complete_reach(struct attach *a, const struct shim_collector *c) {
    struct reach *r = &a->o->reach;
    char why[TLS_ERROR_BYTES];
    if (!a->o->trace.host) {
        snprintf(r->host, sizeof r->host, "%s", c->host);
        r->to.port = c->port;
    }
    if (!r->to.secret && c->secret.len > 0 && c->secret.len <= sizeof r->secret.bytes) {
        memcpy(r->secret.bytes, c->secret.data, c->secret.len);
        r->secret.len = c->secret.len;
        r->to.secret = &r->secret;
    }
    if (!r->tls && c->tls) {
        r->context = tls_client_pem(&(struct tls_pem){c->tls_cert, c->tls_key, c->tls_ca}, why);
        r->to.tls = r->context;
        snprintf(r->name, sizeof r->name, "%s", c->tls_name);
        r->to.tls_name = *r->name ? r->name : NULL;
        if (!r->context) {
            say(a, "no live numbers: %s", why);
            return false;
        }
    }
    return true;
}

// Whether it is known how to reach the collector from here.
static bool know_collector(struct attach *a) {
    if (!a->o->config_name) {
        return true;
    }
    struct shim_collector reached; // as the node knows it
    if (!shim_collector(&a->node, &reached)) {
        return a->o->trace.host;
    }
    bool known = complete_reach(a, &reached);
    shim_collector_wipe(&a->node, &reached);
    return known;
}

// A screen for the collector that the node reports to: the command line's, or the one that the
// configuration names.
static struct screen make_screen(struct attach *a) {
    bool known = know_collector(a);
    struct client_options to = a->o->reach.to;
    to.host = known ? to.host : NULL;
    struct screen s = screen_make(&to, a->o->json);
    bool entry = a->o->trace.entry_count > 0 || a->o->config_name;
    s.view.hint = entry            ? NULL
                  : a->o->no_tiers ? "nothing is traced; kprof top shows what the node does"
                                   : "without --entry the application must mark them";
    return s;
}

int attach_main(int argc, char **argv) {
    static struct attach_options o;
    struct attach a = {.o = &o, .own = OWN_NONE};
    struct dist_error e;
    int status = attach_options_read(argc, argv, &o);
    if (status == EXIT_SUCCESS && !catch_signals()) {
        status = command_fail("attach", EXIT_FAILURE, "cannot catch signals: %s", strerror(errno));
    }
    if (status == EXIT_SUCCESS) {
        if (begin(&a, &e)) {
            a.screen = make_screen(&a);
            a.end_ns = o.for_ns ? clock_monotonic() + o.for_ns : 0;
            a.watched = true;
            status = watch(&a);
        } else {
            status = command_fail("attach", (int)e.status, "%s", e.text);
        }
        status = has_own(&a) ? end_own(&a, status) : status;
    }
    attach_options_free(&o);
    return status;
}
