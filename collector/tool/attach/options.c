// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/names.h"
#include "base/text_time.h"
#include "tool/attach/attach.h"
#include "tool/command.h"
#include "tool/own.h"

enum { FILE_BYTES = 1 << 20, CHUNK = 65536 };

const char attach_help[] =
    "usage: kprof attach NODE [--tier NAME=M:F/A]... [--entry M:F/A]... [OPTIONS]\n"
    "       kprof attach NODE --config FILE [OPTIONS]\n"
    "\n"
    "Traces the running Erlang or Elixir node NODE (name@host, as node() says in it; without\n"
    "@host one on this host) until Ctrl-C, TERM or the end of --for, and takes everything back\n"
    "out of it. The node needs nothing but OTP 25 or newer with runtime_tools; this host needs\n"
    "no Erlang. When NODE restarts, tracing starts again. When this command is killed, the node\n"
    "takes kprof out by itself within 10 s.\n"
    "\n"
    "What is traced:\n"
    "  --tier NAME=M:F/A       time the calls of this function as a tier; give it for every tier.\n"
    "                          With ,returns=none behind it its return values stay on the node,\n"
    "                          and most of its errors are not seen\n"
    "  --entry M:F/A           each call of this function is a request; it may be given more\n"
    "                          than once. Without it the application must mark its requests\n"
    "                          (kprof:do_apply/3). With ,returns=none behind it its return values\n"
    "                          stay on the node, and requests that fail may be incomplete\n"
    "  --identity M:F/A:N      argument N (1 is the first) of this call names the request: an\n"
    "                          atom or text. A Plug.Conn is called GET /users/*, another struct\n"
    "                          or a record by its name; any other value leaves the request\n"
    "                          without a name. An Erlang fun as text can look into arguments:\n"
    "                          'fun({shop_http, handle, [Route | _]}) -> Route; (_) ->\n"
    "                          undefined end'. Where NODE runs Elixir, so can an Elixir fn:\n"
    "                          'fn {MyApp.Endpoint, :call, [conn, _]} -> conn.method; _ -> nil end'\n"
    "  --preset WHAT           entry, tiers and identity of what is known: phoenix, ecto, cowboy,\n"
    "                          rabbitmq or ejabberd; with their modules phoenix=MyApp.Endpoint and\n"
    "                          ecto=MyApp.Repo. It may be given more than once. --tier and --entry\n"
    "                          add to it; kprof suggest NODE --preset WHAT shows it\n"
    "  --sample N|R/s          trace one request in N, or at most R requests a second. R/s does\n"
    "                          not go with --entry\n"
    "  --config FILE           the options of kprof:start_trace/1 as Erlang terms: each one, or\n"
    "                          one list of all, ended by a full stop. They are evaluated on\n"
    "                          NODE. Options of this command line replace those of FILE\n"
    "  --no-tiers              trace nothing: kprof is there for kprof sample and kprof top, which\n"
    "                          look at the node through the collector\n"
    "  --wait                  a module or function need not be there yet: it is traced once it\n"
    "                          is loaded\n"
    "  --tracer KIND           what NODE traces to: port, a trace port (the default); native, a\n"
    "                          library of kprof's in NODE, with which a traced call costs less;\n"
    "                          auto, which is native on releases of OTP that it was tried on.\n"
    "                          Where it does not load it is the port, and a line says why\n"
    "M:F/A is shop_http:handle/2, 'my mod':'do it'/2, or as Elixir writes it: MyApp.Repo.all/2,\n"
    ":ets.lookup/2.\n"
    "\n"
    "How NODE is reached, and for how long:\n"
    "  --cookie-file FILE      a file with the node's cookie (default: ~/.erlang.cookie), which\n"
    "                          others may not write and should not read\n"
    "  --for TIME              end after this time, such as 60s or 5m\n"
    "\n"
    "Where the trace goes. Without any of these options it goes to the collector at\n"
    "127.0.0.1:4711 if one answers there. If none does, this command runs a collector of its own,\n"
    "which writes kprof.db. The first line says which:\n"
    "  --db FILE               run a collector for as long as this command lasts, which writes\n"
    "                          this database. It demands the secret of --secret-file, or one\n"
    "                          that is made for this run\n"
    "  --listen [ADDR:]PORT    where that collector listens (default: a free port of loopback,\n"
    "                          or, for NODE on another host, of the address at which NODE\n"
    "                          reaches this host; what is traced can be read on the way then)\n"
    "\n"
    "How NODE reaches a collector that runs already. This command reaches it in the same way, for\n"
    "its live table. The contents of these files are sent to NODE:\n" REACH_HELP
    "The file of --config may say what these leave out: {collector, {Host, Port}}, {secret_file,\n"
    "File} and {tls, Map}. That collector is used then, and no other is looked for. The files that\n"
    "it names are read on NODE, so give absolute names; their contents are sent to this command.\n"
    "\n"
    "A terminal shows a table of the last second and of what was counted and lost since the\n"
    "beginning:\n"
    "  --json                  a line with a JSON object each second instead, also without a\n"
    "                          terminal\n"
    "\n"
    "Exit status\n"
    "  0 ended as told, or by kprof detach      5 the node's OTP is older than 25\n"
    "  1 something else                         6 what is to be traced is wrong\n"
    "  2 wrong usage                            7 the node does not load the shim\n"
    "  3 the node is not up, or is gone         8 the collector is not there, or no trace port\n"
    "  4 wrong cookie, or no cookie file        9 traced already by somebody else\n";

// -- what detach reads, too -----------------------------------------------------------------------

int attach_one_node(int argc, char **argv) {
    return argc - optind == 1
               ? EXIT_SUCCESS
               : command_fail(argv[0], EXIT_USAGE,
                              argc == optind ? "which node? Say name@host (--help tells more)"
                                             : "one node at a time (--help tells more)");
}

int attach_read_node(const char *command, const char *node, const char *cookie_file,
                     struct dist_name *name, char cookie[COOKIE_BYTES], char *warning) {
    char host[256], own[COOKIE_WARNING_BYTES];
    struct dist_error e;
    if (gethostname(host, sizeof host) != 0) {
        strcpy(host, "localhost");
    }
    host[sizeof host - 1] = 0;
    host[strcspn(host, ".")] = 0;
    if (!dist_name_parse(node, host, name)) {
        return command_fail(command, EXIT_USAGE,
                            "%s is no name of a node: want name@host, as node() says in it", node);
    }
    if (!cookie_read(cookie_file, cookie, warning ? warning : own, &e)) {
        return command_fail(command, (int)e.status, "%s", e.text);
    }
    if (!warning && *own) {
        fprintf(stderr, "kprof %s: warning: %s\n", command, own);
    }
    return EXIT_SUCCESS;
}

const char *attach_own_name(void) {
    static char name[40]; // the prefix is known to kprof_visit:leave/3
    snprintf(name, sizeof name, "kprof_attach_%ld", (long)getpid());
    return name;
}

// -- values ---------------------------------------------------------------------------------------

static int wrong(const char *option, const char *text, const char *want) {
    return command_fail("attach", EXIT_USAGE, "--%s %s: want %s", option, text, want);
}

// M:F/A or M:F/A,returns=none, which sets *blind.
static bool take_function(const char *text, struct mfa *mfa, bool *blind) {
    static const char ending[] = ",returns=none";
    char function[MFA_TEXT_BYTES];
    size_t len = strlen(text), end = sizeof ending - 1;
    *blind = len > end && strcmp(text + len - end, ending) == 0;
    len -= *blind ? end : 0;
    if (len >= sizeof function) {
        return false;
    }
    snprintf(function, sizeof function, "%.*s", (int)len, text);
    return mfa_parse(function, mfa);
}

// NAME=M:F/A
static int take_tier(struct attach_options *o, const char *text) {
    const char *equals = strchr(text, '=');
    if (o->trace.tier_count == SHIM_TIERS) {
        return wrong("tier", text, "fewer tiers");
    }
    struct shim_tier *tier = &o->tiers[o->trace.tier_count];
    if (!equals || equals == text || !take_function(equals + 1, &tier->mfa, &tier->blind)) {
        return wrong("tier", text,
                     "NAME=MODULE:FUNCTION/ARITY, such as db=my_db:query/2 or db=MyApp.Repo.all/2");
    }
    tier->name = slice_of((const uint8_t *)text, (size_t)(equals - text));
    if (tier->name.len > LIMIT_NAME_BYTES || !names_is_clean(tier->name)) {
        return wrong("tier", text, "printable UTF-8 of at most 120 bytes as its name");
    }
    o->trace.tiers = o->tiers;
    o->trace.tier_count++;
    return EXIT_SUCCESS;
}

static int take_entry(struct attach_options *o, const char *text) {
    if (o->trace.entry_count == SHIM_ENTRIES) {
        return wrong("entry", text, "fewer entries");
    }
    struct shim_entry *entry = &o->entries[o->trace.entry_count];
    if (!take_function(text, &entry->mfa, &entry->blind)) {
        return wrong("entry", text, "MODULE:FUNCTION/ARITY, or MODULE:FUNCTION/ARITY,returns=none");
    }
    o->trace.entries = o->entries;
    o->trace.entry_count++;
    return EXIT_SUCCESS;
}

int attach_take_preset(const char *command, const char *text, const char **presets,
                       uint32_t *count) {
    if (*count == SHIM_PRESETS) {
        return command_fail(command, EXIT_USAGE, "--preset %s: want fewer presets", text);
    }
    presets[(*count)++] = text;
    return EXIT_SUCCESS;
}

static int take_identity(struct attach_options *o, const char *text) {
    const char *start = text + strspn(text, " \t\n");
    bool erlang = strncmp(start, "fun", 3) == 0 && strchr("( \t\n", start[3]);
    bool elixir = strncmp(start, "fn", 2) == 0 && strchr("( \t\n{", start[2]);
    if (erlang || elixir) {
        o->trace.identity_fun = start;
        o->trace.identity = NULL; // the last one counts
        return EXIT_SUCCESS;
    }
    const char *want = mfa_parse_argument(text, &o->identity, &o->trace.identity_argument);
    if (want) {
        return command_fail(
            "attach", EXIT_USAGE,
            "--identity %s: want %s; or a fun of Erlang's, 'fun(...) -> ... end'; or, for "
            "a node that runs Elixir, 'fn ... -> ... end'",
            text, want);
    }
    o->trace.identity = &o->identity;
    o->trace.identity_fun = NULL;
    return EXIT_SUCCESS;
}

static int take_sample(struct attach_options *o, const char *text) {
    struct command_sampling sampling;
    if (!command_sampling(text, &sampling)) {
        return wrong("sample", text, COMMAND_SAMPLING);
    }
    o->trace.one_in = (uint32_t)sampling.one_in;
    o->trace.per_second = (uint32_t)sampling.per_second;
    return EXIT_SUCCESS;
}

static int take_tracer(struct attach_options *o, const char *text) {
    static const char *const all[] = {"port", "native", "auto"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(text, all[i]) == 0) {
            o->trace.tracer = all[i];
            return EXIT_SUCCESS;
        }
    }
    return wrong("tracer", text, "port, native or auto");
}

static int take(void *to, int option, const char *value) {
    struct attach_options *o = to;
    switch (option) {
    case 't':
        return take_tier(o, value);
    case 'e':
        return take_entry(o, value);
    case 'i':
        return take_identity(o, value);
    case 's':
        return take_sample(o, value);
    case 'T':
        return take_tracer(o, value);
    case 'p':
        o->trace.presets = o->presets;
        return attach_take_preset("attach", value, o->presets, &o->trace.preset_count);
    case 'F':
        return text_duration_parse(value, &o->for_ns) && o->for_ns > 0
                   ? EXIT_SUCCESS
                   : wrong("for", value, "a time such as 60s");
    case 'f':
        o->config_name = value;
        break;
    case 'k':
        o->cookie_file = value;
        break;
    case 'j':
        o->json = true;
        break;
    case 'w':
        o->trace.wait = true;
        break;
    case 'n':
        o->no_tiers = true;
        break;
    case 'd':
        o->db = value;
        break;
    case 'l':
        o->listen = value;
        break;
    default:
        reach_option(&o->reach, option, value);
    }
    return EXIT_SUCCESS;
}

// -- files ----------------------------------------------------------------------------------------

// Reads a file that `what` names, if there is one.
static int read_text(const char *name, const char *what, struct buffer *text) {
    if (!name) {
        return EXIT_SUCCESS;
    }
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
    if (text->failed || text->len > FILE_BYTES) {
        return command_fail("attach", DIST_CONFIG, "%s %s is longer than 1 MB", what, name);
    }
    if (fd < 0 || n < 0) {
        return command_fail("attach", DIST_CONFIG, "cannot read %s %s: %s", what, name,
                            strerror(why));
    }
    return text->len > 0 ? EXIT_SUCCESS
                         : command_fail("attach", DIST_CONFIG, "%s %s is empty", what, name);
}

static int read_files(struct attach_options *o) {
    const struct {
        const char *name, *what;
        struct slice *text;
    } files[ATTACH_FILES] = {{o->config_name, "the configuration file", &o->trace.config},
                             {o->reach.tls_files.ca, "the authorities", &o->trace.tls_ca},
                             {o->reach.tls_files.cert, "the certificate", &o->trace.tls_cert},
                             {o->reach.tls_files.key, "the key", &o->trace.tls_key}};
    int status = EXIT_SUCCESS;
    for (int i = 0; i < ATTACH_FILES && status == EXIT_SUCCESS; i++) {
        status = read_text(files[i].name, files[i].what, &o->files[i]);
        *files[i].text = slice_of(o->files[i].data, o->files[i].len);
    }
    return status;
}

// -- the whole ------------------------------------------------------------------------------------

// Which collector. Where nothing is said of it here a configuration may tell, in the node.
static int choose_collector(struct attach_options *o) {
    const struct reach *r = &o->reach;
    bool own = o->db || o->listen;
    if (own && r->collector) {
        return command_fail("attach", EXIT_USAGE,
                            "--collector names a collector that runs, --db and --listen are for "
                            "one of this command's own: say one of them");
    }
    if (own && (r->tls || r->tls_files.cert || r->tls_files.key || r->tls_name)) {
        return command_fail("attach", EXIT_USAGE,
                            "a collector of this command's own is without TLS; start one with "
                            "kprof-collector --tls-cert, and name it with --collector");
    }
    o->db = own && !o->db ? OWN_DATABASE : o->db;
    o->either = !own && !r->collector && !r->secret_file && !r->tls;
    return EXIT_SUCCESS;
}

static int check(const struct attach_options *o) {
    if (o->config_name && o->trace.preset_count > 0) {
        return command_fail("attach", EXIT_USAGE,
                            "--config and --preset exclude each other: the file names the tiers");
    }
    if (o->config_name && o->trace.tier_count > 0) {
        return command_fail("attach", EXIT_USAGE,
                            "--config and --tier exclude each other: the file names the tiers");
    }
    bool nothing = !o->config_name && o->trace.tier_count == 0 && o->trace.entry_count == 0 &&
                   o->trace.preset_count == 0;
    if (nothing && !o->no_tiers) {
        return command_fail("attach", EXIT_USAGE,
                            "what is to be traced? Say --tier, --entry, --preset or --config, or "
                            "ask kprof suggest (--help tells more)");
    }
    if (o->no_tiers && !nothing) {
        return command_fail("attach", EXIT_USAGE,
                            "--no-tiers traces nothing: it goes with none of --tier, --entry, "
                            "--preset and --config");
    }
    if (o->trace.per_second > 0 && o->trace.entry_count > 0) { // the node would say so, too
        return command_fail(
            "attach", EXIT_USAGE,
            "with --entry say --sample N: its requests are sampled by one in N only");
    }
    return EXIT_SUCCESS;
}

int attach_options_reach(struct attach_options *o) {
    reach_close(&o->reach);
    int status = reach_prepare("attach", &o->reach);
    o->trace.host = o->reach.collector || !o->config_name ? o->reach.host : NULL;
    o->trace.port = o->reach.to.port;
    o->trace.secret = secret_slice(&o->reach.secret);
    o->trace.tls = o->reach.tls;
    o->trace.tls_name = o->reach.tls_name;
    return status;
}

int attach_options_read(int argc, char **argv, struct attach_options *o) {
    static const struct option options[] = {
        REACH_OPTIONS,
        {"cookie-file", required_argument, NULL, 'k'},
        {"tier", required_argument, NULL, 't'},
        {"entry", required_argument, NULL, 'e'},
        {"identity", required_argument, NULL, 'i'},
        {"preset", required_argument, NULL, 'p'},
        {"sample", required_argument, NULL, 's'},
        {"config", required_argument, NULL, 'f'},
        {"for", required_argument, NULL, 'F'},
        {"tracer", required_argument, NULL, 'T'},
        {"wait", no_argument, NULL, 'w'},
        {"no-tiers", no_argument, NULL, 'n'},
        {"db", required_argument, NULL, 'd'},
        {"listen", required_argument, NULL, 'l'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    memset(o, 0, sizeof *o);
    for (int i = 0; i < ATTACH_FILES; i++) {
        o->files[i] = buffer_make(FILE_BYTES + CHUNK);
    }
    int status = command_options(argc, argv, options, take, o);
    status = status == EXIT_SUCCESS ? attach_one_node(argc, argv) : status;
    status = status == EXIT_SUCCESS ? check(o) : status;
    status = status == EXIT_SUCCESS ? choose_collector(o) : status;
    status = status == EXIT_SUCCESS ? attach_options_reach(o) : status;
    status = status == EXIT_SUCCESS ? read_files(o) : status;
    return status == EXIT_SUCCESS
               ? attach_read_node("attach", argv[optind], o->cookie_file, &o->node, o->cookie, NULL)
               : status;
}

void attach_options_free(struct attach_options *o) {
    explicit_bzero(o->cookie, sizeof o->cookie);
    for (int i = 0; i < ATTACH_FILES; i++) {
        if (o->files[i].len > 0) {
            explicit_bzero(o->files[i].data, o->files[i].len); // one is a key
        }
        buffer_free(&o->files[i]);
    }
    reach_close(&o->reach);
}
