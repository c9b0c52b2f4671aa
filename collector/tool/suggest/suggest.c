// SPDX-License-Identifier: Apache-2.0
// kprof suggest: into a node, a look at it, and out again.
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text_time.h"
#include "tool/attach/attach.h"
#include "tool/command.h"
#include "tool/suggest/print.h"

enum { LOOK_MS = 3000, LONGEST_MS = 4000, OUT_BYTES = 8 << 20, MS = 1000000 };

const char suggest_help[] =
    "usage: kprof suggest NODE [OPTIONS]\n"
    "\n"
    "What should I trace? Looks at the running Erlang or Elixir node NODE for some seconds, and\n"
    "prints a kprof attach command for it: what a request is, which functions are tiers, and what\n"
    "to call a request. The lines above the command tell the reason of each. It knows Phoenix,\n"
    "Plug, Ecto, cowboy, elli, mochiweb, yaws, RabbitMQ and ejabberd. On other nodes it takes what\n"
    "the busiest processes do, so run it while NODE serves requests. Nothing is traced meanwhile,\n"
    "and nothing stays in NODE.\n"
    "\n"
    "  --preset WHAT       print what this preset of kprof attach stands for in NODE instead; may be\n"
    "                      given more than once\n"
    "  --for TIME          look at the busiest processes for so long, 4s at most (default: 3s)\n"
    "  --config-out FILE   write the same for kprof attach --config FILE\n"
    "  --json              one JSON object instead of the text\n"
    "  --cookie-file FILE  a file with the node's cookie (default: ~/.erlang.cookie), which\n"
    "                      others may not write and should not read\n"
    "\n"
    "Exit status: as that of kprof attach; 10 when there is nothing to suggest.\n";

struct options {
    struct dist_name node;
    char cookie[COOKIE_BYTES];
    const char *cookie_file, *config_out;
    const char *presets[SHIM_PRESETS];
    uint32_t preset_count;
    uint32_t for_ms;
    bool json;
};

// -- the command line -----------------------------------------------------------------------------

static int take_time(const char *text, uint32_t *ms) {
    int64_t ns = 0;
    if (!text_duration_parse(text, &ns) || ns < MS || ns > (int64_t)LONGEST_MS * MS) {
        return command_fail("suggest", EXIT_USAGE, "--for %s: want a time up to 4s", text);
    }
    *ms = (uint32_t)(ns / MS);
    return EXIT_SUCCESS;
}

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    switch (option) {
    case 'F':
        return take_time(value, &o->for_ms);
    case 'p':
        return attach_take_preset("suggest", value, o->presets, &o->preset_count);
    case 'c':
        o->config_out = value;
        break;
    case 'k':
        o->cookie_file = value;
        break;
    default: // 'j'
        o->json = true;
    }
    return EXIT_SUCCESS;
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        {"for", required_argument, NULL, 'F'},
        {"preset", required_argument, NULL, 'p'},
        {"config-out", required_argument, NULL, 'c'},
        {"cookie-file", required_argument, NULL, 'k'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    *o = (struct options){.for_ms = LOOK_MS};
    int status = command_options(argc, argv, options, take, o);
    if (status == EXIT_SUCCESS && argc - optind != 1) {
        status = command_fail("suggest", EXIT_USAGE,
                              "which node? Say one name@host (--help tells "
                              "more)");
    }
    return status == EXIT_SUCCESS ? attach_read_node("suggest", argv[optind], o->cookie_file,
                                                     &o->node, o->cookie, NULL)
                                  : status;
}

// -- signals --------------------------------------------------------------------------------------

// The look is over soon: the first one waits for that, and takes kprof out. The second one does not
// wait.

static volatile sig_atomic_t stops;

static void on_stop(int signal) {
    static const char first[] = "\nkprof suggest: taking kprof out of the node\n";
    static const char hasty[] =
        "\nkprof suggest: left at once; the node takes kprof out by itself within 10 s\n";
    int before = errno;
    bool again = stops++ > 0;
    ssize_t ignored = again ? write(STDERR_FILENO, hasty, sizeof hasty - 1)
                            : write(STDERR_FILENO, first, sizeof first - 1);
    (void)ignored;
    if (again && signal == SIGINT) {
        _exit(EXIT_FAILURE);
    }
    errno = before;
}

static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

// -- the whole ------------------------------------------------------------------------------------

// Whoever traces there has brought what answers: it is asked as a guest, and nothing is taken out.
static bool look(struct dist_node *n, const struct options *o, struct shim_suggestions *s,
                 struct dist_error *e) {
    struct shim_told told;
    struct dist_error why;
    bool ours = shim_enter(n, &told, e);
    if (!ours && e->status != DIST_BUSY) {
        return false;
    }
    bool good = shim_suggest(n, o->for_ms, o->presets, o->preset_count, s, &why);
    if (!good && ours) {
        *e = why; // else what is in the way is told
    }
    if (ours && !shim_leave(n, true, &told, &why)) {
        command_fail("suggest", 0,
                     "%s; if kprof is still in the node, it leaves by itself within 10 s",
                     why.text);
    }
    return good;
}

// False, and has told why.
static bool write_config(const char *name, struct slice config) {
    for (size_t i = 0; i < config.len; i++) {
        if ((config.data[i] < ' ' && config.data[i] != '\n') || config.data[i] == 0x7f) {
            command_fail("suggest", EXIT_FAILURE,
                         "--config-out: the node's names cannot be "
                         "written into a file");
            return false;
        }
    }
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool good = file && fwrite(config.data, 1, config.len, file) == config.len;
    good = file && fclose(file) == 0 && good;
    if (!good) {
        command_fail("suggest", EXIT_FAILURE, "cannot write %s: %s", name, strerror(errno));
    }
    return good;
}

static int tell(const struct options *o, const char *node, const struct shim_suggestions *s) {
    struct buffer out = buffer_make(OUT_BYTES);
    struct suggest_about about = {node, o->cookie_file};
    if (s->count == 0) {
        command_fail("suggest", EXIT_NO_REQUEST,
                     "nothing to suggest: %s runs no server that is known, and none of its own "
                     "processes was seen at work. Try again while it serves requests",
                     node);
        suggest_print_notes(&out, s);
        fwrite(out.data, 1, out.len, stderr);
        buffer_free(&out);
        return EXIT_NO_REQUEST;
    }
    if (o->config_out && !write_config(o->config_out, s->config)) {
        buffer_free(&out);
        return EXIT_FAILURE;
    }
    if (o->json) {
        suggest_print_json(&out, s, &about);
    } else {
        suggest_print_text(&out, s, &about);
    }
    return command_print("suggest", &out);
}

int suggest_main(int argc, char **argv) {
    static struct options o;
    static struct shim_suggestions s;
    struct dist_node node;
    struct dist_error e;
    int status = parse(argc, argv, &o);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    bool there =
        dist_node_connect(&node, &o.node, attach_own_name(), o.cookie, ATTACH_CONNECT_MS, &e);
    explicit_bzero(o.cookie, sizeof o.cookie);
    if (!there) {
        return command_fail("suggest", (int)e.status, "%s", e.text);
    }
    catch_signals();
    bool good = look(&node, &o, &s, &e);
    dist_node_disconnect(&node);
    if (stops > 0) {
        status = EXIT_FAILURE;
    } else {
        status = good ? tell(&o, node.name.full, &s)
                      : command_fail("suggest", (int)e.status, "%s", e.text);
    }
    shim_suggestions_free(&s);
    return status;
}
