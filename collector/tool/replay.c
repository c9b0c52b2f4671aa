// SPDX-License-Identifier: Apache-2.0
// kprof replay: a capture through the collector's own pipeline into a new database.
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/text_time.h"
#include "codec/mfa.h"
#include "ingest/capture.h"
#include "ingest/pipeline.h"
#include "store/store.h"
#include "tool/command.h"

const char replay_help[] =
    "usage: kprof replay FILE --db FILE --tier NAME=M:F/A... [OPTIONS]\n"
    "\n"
    "Reads a trace-port capture (of dbg:trace_port(file, F), or of kprof-collector --record)\n"
    "through the collector's pipeline into a new database. The same file and options give the\n"
    "same result.\n"
    "\n"
    "  --db FILE             the database to make; it must not be there yet\n"
    "  --tier NAME=M:F/A     time the calls of this function as a tier; give it for every tier\n"
    "  --entry NAME          the tier whose call opens a request; a token whose first call is\n"
    "                        another one is incomplete. Without it the first call under a token\n"
    "                        opens one. Not needed where kprof's shim marked begin and end\n"
    "  --identity M:F/A:N    argument N (1 is the first) of this call is the request's identity;\n"
    "                        the capture must hold arguments (no arity flag)\n"
    "  --start TIME          when the capture began, as 2026-11-20T10:00:00Z; without it\n"
    "                        captures with monotonic times begin in 1970\n"
    "  --bucket SECONDS      length of the finest statistics (default 10)\n"
    "  --request-timeout T   age at which a request without an end expires (default 30s)\n"
    "  --slow-threshold T    requests over it are kept whole as slow ones (default 1s); besides,\n"
    "                        of each identity and bucket, some that failed and the slowest of\n"
    "                        the others\n"
    "\n"
    "What a capture needs: a token for each request, seq_trace:set_token(label, Integer), of its\n"
    "own; on processes the flags call and monotonic_timestamp (or timestamp), and arity unless\n"
    "--identity wants arguments; and for each tier's function, as dbg:tp(M, F, A, Spec), the\n"
    "match spec [{'_', [{is_seq_trace}], [{message, {get_seq_token}}, {exception_trace}]}].\n"
    "\n"
    "M:F/A is shop_http:handle/2, 'my mod':'do it'/2, or as Elixir writes it: MyApp.Repo.all/2,\n"
    ":ets.lookup/2. T is a number with ms, s, m, h or d; without a unit it is seconds.\n"
    "\n"
    "A summary goes to stderr. Exit status: 0 done, 1 failed, 2 the file is damaged or cut (what\n"
    "could be read was counted), or wrong usage.\n";

enum { CHUNK = 1 << 20, FLUSH_ROWS = 4000, FLUSH_KEPT = 200 };

struct tier {
    struct slice name; // in its argument
    struct mfa mfa;
};

struct replay {
    const char *file, *db, *entry, *start;
    struct tier *tiers; // LIMIT_TIERS
    uint32_t tier_count;
    struct mfa identity;
    uint32_t argument; // of it that is the identity, 0: none
    int64_t bucket_ns, timeout_ns, slow_ns;

    int64_t wall; // time of the first message, when start told it
    int fd;
    bool terminal;    // progress is shown
    uint64_t size;    // of the file, 0: not known
    uint64_t read;    // bytes of it
    uint8_t *map;     // the file, NULL: it is read into chunk
    uint8_t *chunk;   // CHUNK bytes
    struct slice now; // what of it is to be fed next
    struct pipeline *pipeline;
    struct pipeline_node *node;
    struct stats *spare;
    struct store *store;
};

static int fail(const char *what, const char *why) {
    fprintf(stderr, "kprof replay: %s: %s\n", what, why);
    return EXIT_FAILURE;
}

static int usage(const char *option, const char *text, const char *want) {
    fprintf(stderr, "kprof replay: %s %s: want %s\n", option, text, want);
    return EXIT_USAGE;
}

// -- command line ---------------------------------------------------------------------------------

static int take_tier(struct replay *r, const char *text) {
    const char *equals = strchr(text, '=');
    if (r->tier_count == LIMIT_TIERS) {
        return usage("--tier", text, "fewer tiers");
    }
    struct tier *t = &r->tiers[r->tier_count];
    if (!equals || equals == text || !mfa_parse(equals + 1, &t->mfa)) {
        return usage("--tier", text,
                     "NAME=MODULE:FUNCTION/ARITY, such as db=my_db:query/2 or db=MyApp.Repo.all/2");
    }
    t->name = slice_of((const uint8_t *)text, (size_t)(equals - text));
    for (uint32_t i = 0; i < r->tier_count; i++) {
        if (slice_equal(r->tiers[i].name, t->name)) {
            return usage("--tier", text, "every name once");
        }
    }
    r->tier_count++;
    return EXIT_SUCCESS;
}

static int take_bucket(struct replay *r, const char *text) {
    const int64_t second = 1000000000, hour = 3600 * second;
    bool good = text_duration_parse(text, &r->bucket_ns) && r->bucket_ns >= second &&
                r->bucket_ns <= hour && r->bucket_ns % second == 0 && hour % r->bucket_ns == 0;
    return good ? EXIT_SUCCESS
                : usage("--bucket", text, "whole seconds that divide an hour, such as 1, 10 or 60");
}

enum { DB = 256, TIER, ENTRY, IDENTITY, START, BUCKET, TIMEOUT, SLOW };

static int take(void *to, int option, const char *value) {
    struct replay *r = to;
    const char *want;
    switch (option) {
    case DB:
        r->db = value;
        break;
    case TIER:
        return take_tier(r, value);
    case ENTRY:
        r->entry = value;
        break;
    case IDENTITY:
        want = mfa_parse_argument(value, &r->identity, &r->argument);
        return want ? usage("--identity", value, want) : EXIT_SUCCESS;
    case START:
        r->start = value;
        return text_time_parse(value, clock_wall(), &r->wall)
                   ? EXIT_SUCCESS
                   : usage("--start", value, "a time such as 2026-11-20T10:00:00Z");
    case BUCKET:
        return take_bucket(r, value);
    case TIMEOUT:
        return text_duration_parse(value, &r->timeout_ns) && r->timeout_ns >= 1000000000
                   ? EXIT_SUCCESS
                   : usage("--request-timeout", value, "a time of 1s or more");
    default:
        return text_duration_parse(value, &r->slow_ns) && r->slow_ns <= 3600000000000
                   ? EXIT_SUCCESS
                   : usage("--slow-threshold", value,
                           "a time of an hour or less, such as 250ms or 0");
    }
    return EXIT_SUCCESS;
}

static int parse(struct replay *r, int argc, char **argv) {
    static const struct option options[] = {{"db", required_argument, NULL, DB},
                                            {"tier", required_argument, NULL, TIER},
                                            {"entry", required_argument, NULL, ENTRY},
                                            {"identity", required_argument, NULL, IDENTITY},
                                            {"start", required_argument, NULL, START},
                                            {"bucket", required_argument, NULL, BUCKET},
                                            {"request-timeout", required_argument, NULL, TIMEOUT},
                                            {"slow-threshold", required_argument, NULL, SLOW},
                                            {NULL, 0, NULL, 0}};
    int status = command_options(argc, argv, options, take, r);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    if (optind + 1 != argc || !r->db || r->tier_count == 0) {
        return command_fail("replay", EXIT_USAGE, "%s; kprof replay --help tells more",
                            optind >= argc       ? "a capture file is missing"
                            : optind + 1 != argc ? "more than one capture file"
                            : !r->db             ? "--db FILE is missing"
                                                 : "--tier NAME=M:F/A is missing");
    }
    r->file = argv[optind];
    return EXIT_SUCCESS;
}

// -- opening --------------------------------------------------------------------------------------

// The next piece out of the mapped file. A file that has become shorter ends in a bus error where
// it is mapped: false, and the rest is read.
static bool map_chunk(struct replay *r) {
    struct stat st;
    size_t len = r->size - r->read < CHUNK ? (size_t)(r->size - r->read) : CHUNK;
    if (fstat(r->fd, &st) != 0 || (uint64_t)st.st_size < r->size) {
        munmap(r->map, r->size);
        r->map = NULL;
        return false;
    }
    r->now = slice_of(r->map + r->read, len);
    r->read += len;
    return true;
}

// The next CHUNK bytes of the file, fewer only at its end, go into r->now, which is empty behind
// it. False on an error.
static bool read_chunk(struct replay *r) {
    if (r->map && map_chunk(r)) {
        return true;
    }
    size_t len = 0;
    while (len < CHUNK) {
        // by offset, as the map may have been the way up to here; a pipe has none
        ssize_t n = r->size > 0 ? pread(r->fd, r->chunk + len, CHUNK - len, (off_t)r->read)
                                : read(r->fd, r->chunk + len, CHUNK - len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return false;
        }
        if (n == 0) {
            break;
        }
        len += (size_t)n;
        r->read += (uint64_t)n;
    }
    r->now = slice_of(r->chunk, len);
    return true;
}

static int open_file(struct replay *r) {
    struct stat st;
    r->terminal = isatty(STDERR_FILENO);
    r->chunk = malloc(CHUNK);
    r->fd = open(r->file, O_RDONLY | O_CLOEXEC);
    if (!r->chunk || r->fd < 0 || fstat(r->fd, &st) != 0) {
        return fail(r->file, strerror(errno));
    }
    if (S_ISREG(st.st_mode) && st.st_size > 0) {
        r->size = (uint64_t)st.st_size;
        void *map = mmap(NULL, r->size, PROT_READ, MAP_PRIVATE, r->fd, 0);
        r->map = map == MAP_FAILED ? NULL : map;
    }
    return read_chunk(r) ? EXIT_SUCCESS : fail(r->file, strerror(errno));
}

static int open_database(struct replay *r) {
    struct stat st;
    char error[STORE_ERROR_BYTES];
    if (stat(r->db, &st) == 0 && st.st_size > 0) {
        return fail(r->db,
                    "is there already; a replay makes a new database, so that its numbers are the "
                    "capture's alone");
    }
    if (store_open(r->db, &r->store, error) != STORE_OK) {
        fprintf(stderr, "kprof replay: %s\n", error);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

// Makes the node with its tiers and clock, ready to be fed.
static int prepare(struct replay *r) {
    struct pipeline_options options = {.bucket_s = r->bucket_ns / 1000000000,
                                       .timeout_ns = r->timeout_ns};
    struct capture capture = capture_probe(r->now);
    struct slice name = capture.node.len > 0 ? capture.node : slice_text("capture");
    struct tier_set set;
    struct pipeline_stream stream = {.entry = TIER_NONE};
    r->pipeline = pipeline_new(&options);
    r->spare = r->pipeline ? pipeline_stats_new(r->pipeline) : NULL;
    r->node = r->pipeline ? pipeline_node(r->pipeline, name) : NULL;
    if (!r->node || !r->spare || !tier_set_init(&set)) {
        return fail(r->file, "out of memory");
    }
    for (uint32_t i = 0; i < r->tier_count; i++) {
        const struct mfa *f = &r->tiers[i].mfa;
        uint16_t tier = directory_tier(pipeline_directory(r->pipeline), r->tiers[i].name);
        if (tier == TIER_TOTAL || tier_set_add(&set, slice_text(f->module), slice_text(f->function),
                                               f->arity, tier) != TIER_SET_OK) {
            tier_set_free(&set);
            return usage("--tier", (const char *)r->tiers[i].name.data,
                         "every function once, and another name than _total");
        }
        if (r->entry && slice_is(r->tiers[i].name, r->entry)) {
            stream.entry = tier;
        }
    }
    if (r->argument > 0) {
        tier_set_name_by(&set, slice_text(r->identity.module), slice_text(r->identity.function),
                         r->identity.arity, r->argument);
    }
    pipeline_set_tiers(r->node, set);
    pipeline_set_slow(r->node, r->slow_ns);
    if (r->entry && stream.entry == TIER_NONE) {
        return usage("--entry", r->entry, "the name of a --tier");
    }
    // Where only monotonic times are, the first one is --start; where both are, they tell how they
    // go together.
    pipeline_set_clock(r->node, 1000000000,
                       capture.wall ? capture.offset : r->wall - capture.first);
    return pipeline_begin(r->node, &stream) ? EXIT_SUCCESS : fail(r->file, "out of memory");
}

// -- reading --------------------------------------------------------------------------------------

static bool flush(struct replay *r) {
    stats_reset(r->spare);
    r->spare = pipeline_swap(r->pipeline, r->spare);
    return store_write(r->store, (uint32_t)(r->bucket_ns / 1000000000), r->spare,
                       pipeline_directory(r->pipeline));
}

static void show_progress(const struct replay *r) {
    static int shown = -1;
    int percent = r->size > 0 ? (int)(r->read * 100 / r->size) : -1;
    if (r->terminal && percent != shown && percent <= 100) {
        shown = percent;
        fprintf(stderr, "\r%3d %% of %s", percent, r->file);
        if (percent == 100) {
            fprintf(stderr, "\r\033[K");
        }
    }
}

// Feeds the file. Sets *damaged to the offset of a frame that is none, or of one that is cut off,
// -1 when all is well. Returns an exit status.
static int feed(struct replay *r, int64_t *damaged) {
    *damaged = -1;
    while (r->now.len > 0 && *damaged < 0) {
        *damaged = pipeline_feed(r->node, r->now);
        // Always at the same places of the file, so that the result is always the same.
        const struct stats *gathered = pipeline_stats(r->pipeline);
        bool much = stats_rows(gathered) > FLUSH_ROWS || stats_paths(gathered) > FLUSH_ROWS ||
                    stats_kept(gathered) > FLUSH_KEPT;
        if (much && !flush(r)) {
            return fail(r->db, store_error(r->store));
        }
        show_progress(r);
        if (!read_chunk(r)) {
            return fail(r->file, strerror(errno));
        }
    }
    int64_t cut;
    if (pipeline_end(r->node, *damaged < 0, &cut) && *damaged < 0) {
        *damaged = cut;
    }
    return flush(r) ? EXIT_SUCCESS : fail(r->db, store_error(r->store));
}

static void summarise(const struct pipeline_totals *t, double seconds) {
    fprintf(stderr,
            "%" PRIu64 " messages, %" PRIu64 " requests complete, %" PRIu64 " incomplete, %" PRIu64
            " expired\n"
            "lost: %" PRIu64 " messages dropped by the node, %" PRIu64
            " returns without their call, %" PRIu64 " calls too late, %" PRIu64 " not understood\n"
            "%.3f s, %.0f messages/s\n",
            t->messages, t->complete, t->incomplete, t->expired, t->dropped, t->orphan_returns,
            t->stale_calls, t->decode_errors, seconds,
            (double)t->messages / (seconds > 0 ? seconds : 1e-9));
}

// Why requests are incomplete, each of them for one reason.
static void tell_reasons(const struct pipeline_totals *t) {
    static const char *const texts[INCOMPLETE_REASONS] = {
        [REASON_LOSS] = "messages were lost while they were open",
        [REASON_TOKEN] = "they lost their token on the way",
        [REASON_CAUSE] = "whose work a call was cannot be told (a pool, a lock, a cache)",
        [REASON_RETURN] = "a return never came, or could not be joined",
        [REASON_GAP] = "a function was not traced for a while",
        [REASON_LARGE] = "they had more calls than are taken",
        [REASON_ROOM] = "there was no room for them",
        [REASON_END] =
            "they did not begin as they should, or the capture began or ended while they were open",
    };
    for (int i = 0; i < INCOMPLETE_REASONS; i++) {
        if (texts[i] && t->reasons[i] > 0) {
            fprintf(stderr, "incomplete: %" PRIu64 ": %s\n", t->reasons[i], texts[i]);
        }
    }
}

// Nothing came out: what the capture lacks, most likely.
static void tell_lack(const struct replay *r, const struct pipeline_totals *t) {
    if (t->calls == 0 && t->tokenless_calls == 0) {
        fprintf(
            stderr,
            "no call of a tier is in it: is M:F/A of each --tier what was traced, with the flag "
            "call?\n");
    } else if (t->calls == 0) {
        fprintf(
            stderr,
            "no request was found: %" PRIu64
            " calls of tiers carry no token. Each request needs one of its own,\n"
            "seq_trace:set_token(label, Integer), and the match specs {message, {get_seq_token}}\n",
            t->tokenless_calls);
    } else if (t->returns == 0) {
        fprintf(stderr, "no request is complete: no call has a return. The match specs need "
                        "{exception_trace}\n");
    } else if (r->entry && t->reasons[REASON_END] > 0) {
        fprintf(
            stderr,
            "no request is complete: with --entry one begins where the first call under its token "
            "is %s\n",
            r->entry);
    } else if (t->complete + t->incomplete + t->expired == 0) {
        fprintf(stderr, "no request was found: no call came that begins one%s%s\n",
                r->entry ? ", of " : "", r->entry ? r->entry : "");
    }
}

static int finish(const struct replay *r, int64_t damaged, double seconds) {
    struct pipeline_totals t = pipeline_totals(r->node);
    summarise(&t, seconds);
    tell_reasons(&t);
    if (t.complete == 0 && t.messages > 0) {
        tell_lack(r, &t);
    }
    if (t.untimed > 0) {
        fprintf(stderr, "%" PRIu64 " calls and returns have no timestamp and could not be used\n",
                t.untimed);
    }
    // damage within a frame, its size say, leads to more behind it
    if (t.first_error >= 0 && t.decode_errors > t.untimed &&
        (damaged < 0 || (t.first_error < damaged && t.untimed == 0))) {
        damaged = t.first_error;
    }
    if (damaged < 0) {
        return EXIT_SUCCESS;
    }
    fprintf(stderr, "kprof replay: %s is damaged or cut off at byte %" PRId64 "\n", r->file,
            damaged);
    return EXIT_DAMAGED;
}

int replay_main(int argc, char **argv) {
    struct replay r = {
        .fd = -1, .bucket_ns = 10000000000, .timeout_ns = 30000000000, .slow_ns = 1000000000};
    int64_t damaged = -1;
    int64_t began = 0;
    hash_seed();
    r.tiers = calloc(LIMIT_TIERS, sizeof *r.tiers);
    int status = r.tiers ? parse(&r, argc, argv) : fail("--tier", "out of memory");
    if (status == EXIT_SUCCESS) {
        status = open_file(&r);
    }
    if (status == EXIT_SUCCESS) {
        status = prepare(&r);
    }
    if (status == EXIT_SUCCESS) {
        status = open_database(&r);
    }
    if (status == EXIT_SUCCESS) {
        began = clock_monotonic();
        status = feed(&r, &damaged);
    }
    if (status == EXIT_SUCCESS) {
        status = finish(&r, damaged, (double)(clock_monotonic() - began) / 1e9);
    }
    store_close(r.store);
    pipeline_free(r.pipeline);
    stats_free(r.spare);
    if (r.map) {
        munmap(r.map, r.size);
    }
    if (r.fd >= 0) {
        close(r.fd);
    }
    free(r.chunk);
    free(r.tiers);
    return status;
}
