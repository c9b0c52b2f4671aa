// SPDX-License-Identifier: Apache-2.0
// Collectors with 1, 2 and 4 threads that take in the same of the same nodes have the same rows in
// their databases.
#include "app/collector.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "codec/control.h"
#include "codec/protocol.h"
#include "trace_bytes.h"

enum {
    NODES = 7,
    REQUESTS = 3000, // of a node; its number more
    SECONDS = 120    // limits for what hangs
};
static const int64_t SECOND = 1000000000, BEGIN = 1000000000000000;
static int64_t offset; // makes the nodes' times those of half past an hour

// -- what the nodes send --------------------------------------------------------------------------

static struct buffer sent[NODES];

static void pair(uint32_t pid, uint32_t label, uint32_t from, int64_t time, int64_t duration) {
    size_t at = frame_begin();
    put_call(pid, label, from, time);
    frame_end(at);
    at = frame_begin();
    put_return_head(pid);
    put_atom("ok");
    put_big(time + duration);
    frame_end(at);
}

// Requests over a minute: under names of its own and of all nodes, in two processes, some slow,
// some whose end does not come, some with work of the next node's requests in between; and some
// frames that are none.
static void script(uint32_t node) {
    char name[32];
    out = buffer_make(64 << 20);
    for (uint32_t i = 1; i <= REQUESTS + node; i++) {
        int64_t time = BEGIN + (int64_t)i * 60 * SECOND / (REQUESTS + NODES);
        uint32_t pid = i % 50 + 1, late = i % 100 == 0 ? 3000000 : 0;
        if (i % 3 == 0) {
            snprintf(name, sizeof name, "own%u_%u", node, i % 40);
        } else {
            snprintf(name, sizeof name, "all%u", i % 40);
        }
        labels_start = node + 1;
        frame_mark("request_begin", pid, i, name, time);
        pair(pid, i, pid, time + 1000, 200000 + 10 * i + late);
        pair(pid + 100, i, pid, time + 300000 + late, 50000 + 7 * i + node);
        if (i % 500 != 0) {
            frame_mark("request_end", pid, i, i % 10 == 0 ? "error" : "ok",
                       time + 4000000 + 3 * i + late);
        }
        if (i % 7 == 0) {
            labels_start = (node + 1) % NODES + 1;
            pair(200 + pid, i, 200 + pid, time + 1000, 30000 + i);
        }
        if (i % 900 == 0) {
            size_t at = frame_begin();
            put_atom("what is this");
            frame_end(at);
            frame_dropped(3);
        }
    }
    sent[node] = out;
}

// -- a collector ----------------------------------------------------------------------------------

static char folder[] = "/tmp/kprof-threads.XXXXXX";
static char log_file[128], database[128];
static pid_t collector;
static uint16_t port;

static void start(uint32_t threads) {
    struct collector_options options = {.address = "127.0.0.1",
                                        .db = database,
                                        .bucket_s = 10,
                                        .flush_ns = SECOND / 10,
                                        .timeout_ns = 30 * SECOND,
                                        .slow_threshold_ns = SECOND,
                                        .threads = threads};
    snprintf(log_file, sizeof log_file, "%s/%u.log", folder, threads);
    snprintf(database, sizeof database, "%s/%u.db", folder, threads);
    collector = fork();
    if (collector == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = open(log_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, 2);
        exit(collector_run(&options));
    }
    port = 0;
    for (int64_t end = clock_monotonic() + SECONDS * SECOND;
         port == 0 && clock_monotonic() < end;) {
        char text[4096] = "";
        FILE *f = fopen(log_file, "r");
        if (f) {
            text[fread(text, 1, sizeof text - 1, f)] = 0;
            fclose(f);
        }
        const char *at = strstr(text, "listening on 127.0.0.1:");
        port = at && strchr(at, ',') ? (uint16_t)atoi(at + strlen("listening on 127.0.0.1:")) : 0;
        usleep(10000);
    }
    assert_true(port > 0);
}

static void end_collector(void) {
    int status = -1;
    kill(collector, SIGTERM);
    assert_int_equal(waitpid(collector, &status, 0), collector);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("the collector ended with %d; %s tells more", status, log_file);
    }
}

static int connected(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void put_all(int fd, const void *data, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, (const char *)data + at, len - at);
        assert_true(n > 0);
        at += (size_t)n;
    }
}

static void send_message(int fd, struct buffer *b, struct control_writer *w) {
    assert_true(control_end(w));
    put_all(fd, b->data, b->len);
    buffer_free(b);
}

// The next message; NULL when the connection has ended. control_free it.
static struct control *hear(int fd) {
    static uint8_t bytes[LIMIT_CONTROL_BYTES + CONTROL_HEADER];
    size_t have = 0, want = CONTROL_HEADER;
    struct slice payload = {0};
    while (have < want) {
        ssize_t got = read(fd, bytes + have, want - have);
        if (got <= 0) {
            return NULL;
        }
        have += (size_t)got;
        if (have == CONTROL_HEADER) {
            struct cursor c = cursor_of(bytes, have);
            want += cursor_u32(&c);
            assert_true(want <= sizeof bytes);
        }
    }
    assert_int_equal(control_frame(slice_of(bytes, have), &payload), have);
    return control_decode(payload);
}

static bool has_text(const struct control *c, const char *key, const char *text) {
    struct slice value = {0};
    return control_get_text(control_root(c), key, &value) && slice_is(value, text);
}

// -- nodes ----------------------------------------------------------------------------------------

struct node {
    int control, data;
    int64_t session;
    uint8_t key[16];
};

static void come(struct node *n, uint32_t number) {
    char name[32];
    struct buffer b = buffer_make(1 << 16);
    struct control_writer w = control_begin(&b, CONTROL_HELLO, 5);
    snprintf(name, sizeof name, "node%u@host", number);
    control_text(&w, FIELD_ROLE, slice_text("control"));
    control_int(&w, FIELD_PROTOCOL, 1);
    control_text(&w, FIELD_NODE, slice_text(name));
    control_int(&w, FIELD_TICKS_PER_SECOND, SECOND);
    control_int(&w, FIELD_TIME_OFFSET, offset);
    n->control = connected();
    send_message(n->control, &b, &w);
    struct control *welcome = hear(n->control);
    struct slice key = {0};
    assert_non_null(welcome);
    assert_true(control_get_int(control_root(welcome), FIELD_SESSION, &n->session));
    assert_true(control_get_bytes(control_root(welcome), FIELD_KEY, &key) && key.len == 16);
    memcpy(n->key, key.data, 16);
    control_free(welcome);
    b = buffer_make(1 << 16);
    w = control_begin(&b, CONTROL_CLOCK, 2);
    control_int(&w, FIELD_AT, BEGIN + 61 * SECOND);
    control_int(&w, FIELD_TIME_OFFSET, offset);
    send_message(n->control, &b, &w);
    b = buffer_make(1 << 16);
    w = control_begin(&b, CONTROL_TRACE_STARTED, 1);
    control_int(&w, FIELD_LABELS, (int64_t)number + 1);
    send_message(n->control, &b, &w);
}

static void begin(struct node *n) {
    struct buffer b = buffer_make(1 << 16);
    struct control_writer w = control_begin(&b, CONTROL_TIERS, 4);
    control_list(&w, FIELD_TIERS, 1);
    control_map(&w, 4);
    control_text(&w, FIELD_NAME, slice_text("storage"));
    control_text(&w, FIELD_M, slice_text("db"));
    control_text(&w, FIELD_F, slice_text("query"));
    control_int(&w, FIELD_A, 2);
    control_bool(&w, FIELD_CALLS, true);
    control_bool(&w, FIELD_SLOW, true);
    control_int(&w, FIELD_SLOW_THRESHOLD_US, 6000);
    send_message(n->control, &b, &w);
    b = buffer_make(1 << 16);
    w = control_begin(&b, CONTROL_HELLO, 4);
    control_text(&w, FIELD_ROLE, slice_text(CONTROL_ROLE_DATA));
    control_int(&w, FIELD_PROTOCOL, 1);
    control_int(&w, FIELD_SESSION, n->session);
    control_bytes(&w, FIELD_KEY, slice_of(n->key, 16));
    n->data = connected();
    send_message(n->data, &b, &w);
}

static void leave(struct node *n) {
    close(n->data);
    struct buffer b = buffer_make(1 << 16);
    struct control_writer w = control_begin(&b, CONTROL_TRACE_STOPPED, 1);
    control_text(&w, FIELD_REASON, slice_text("stopped"));
    send_message(n->control, &b, &w);
    shutdown(n->control, SHUT_WR);
}

// Waits until the collector tells that all nodes are in a state.
static void wait_for(const char *state) {
    int tool = connected(), count = 0;
    struct buffer b = buffer_make(1 << 16);
    struct control_writer w = control_begin(&b, CONTROL_HELLO, 2);
    control_text(&w, FIELD_ROLE, slice_text(CONTROL_ROLE_TOOL));
    control_int(&w, FIELD_PROTOCOL, 1);
    send_message(tool, &b, &w);
    for (int64_t end = clock_monotonic() + SECONDS * SECOND;
         count != NODES && clock_monotonic() < end; usleep(20000)) {
        b = buffer_make(1 << 16);
        w = control_begin(&b, CONTROL_NODES, 0);
        send_message(tool, &b, &w);
        count = 0;
        for (bool over = false; !over;) {
            struct control *c = hear(tool);
            assert_non_null(c);
            count += has_text(c, FIELD_TYPE, CONTROL_NODE) && has_text(c, FIELD_STATE, state);
            over = has_text(c, FIELD_TYPE, CONTROL_NODES);
            control_free(c);
        }
    }
    close(tool);
    assert_int_equal(count, NODES);
}

// Whether the node is told of requests, of slow ones too. It goes only then.
static bool was_told(const struct node *n) {
    bool calls = false, slow = false;
    for (struct control *c; !(calls && slow) && (c = hear(n->control)); control_free(c)) {
        calls = calls || has_text(c, FIELD_TYPE, CONTROL_CALLS);
        slow = slow || has_text(c, FIELD_TYPE, CONTROL_SLOW);
    }
    return calls && slow;
}

// All nodes at the same time, a piece of each in turn.
static void run_nodes(void) {
    struct node nodes[NODES];
    size_t at[NODES] = {0};
    for (uint32_t i = 0; i < NODES; i++) {
        come(&nodes[i], i);
    }
    wait_for(STATE_TRACING); // what labels start with is known of all nodes
    for (uint32_t i = 0; i < NODES; i++) {
        begin(&nodes[i]);
    }
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < NODES; i++) {
            size_t left = sent[i].len - at[i], len = 7001 + 1000 * i;
            len = len < left ? len : left;
            put_all(nodes[i].data, sent[i].data + at[i], len);
            at[i] += len;
            more = more || at[i] < sent[i].len;
        }
    }
    for (uint32_t i = 0; i < NODES; i++) {
        assert_true(was_told(&nodes[i]));
        leave(&nodes[i]);
    }
    wait_for("gone");
    for (uint32_t i = 0; i < NODES; i++) {
        close(nodes[i].control);
    }
}

// -- databases ------------------------------------------------------------------------------------

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// The rows of a query as sorted lines.
static void tell_rows(sqlite3 *db, const char *query, struct buffer *to) {
    static char *lines[200000];
    uint32_t count = 0;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &s, NULL), SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW) {
        struct buffer line = buffer_make(1 << 16);
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            if (sqlite3_column_type(s, i) == SQLITE_FLOAT) {
                // the sums of squares depend on what was flushed together, in the last digits
                buffer_printf(&line, "%.10g|", sqlite3_column_double(s, i));
            } else {
                const char *text = (const char *)sqlite3_column_text(s, i);
                buffer_printf(&line, "%s|", text ? text : "");
            }
        }
        buffer_append(&line, "", 1);
        assert_true(count < sizeof lines / sizeof *lines);
        lines[count++] = (char *)line.data;
    }
    sqlite3_finalize(s);
    qsort(lines, count, sizeof *lines, compare);
    buffer_printf(to, "-- %s: %u\n", query, count);
    for (uint32_t i = 0; i < count; i++) {
        buffer_printf(to, "%s\n", lines[i]);
        free(lines[i]);
    }
    assert_true(count > 0);
}

static struct buffer tell(void) {
    static const char *const queries[] = {
        "SELECT * FROM tier_stats",
        "SELECT * FROM path_stats",
        "SELECT bucket_start, resolution_s, node, requests_complete, requests_incomplete, "
        "requests_expired, verdict FROM ledger",
        // in which bucket a message is counted depends on what came with it; they are of one hour
        "SELECT * FROM ledger WHERE resolution_s = 3600",
        "SELECT * FROM tier_costs WHERE resolution_s = 3600",
        // numbers are given as requests come
        "SELECT node, identity, started_at, duration_us, outcome, label FROM slow_requests",
        "SELECT r.node, r.started_at, s.span, s.name, s.pid, s.start_us, s.duration_us, s.self_us "
        "FROM slow_spans s JOIN slow_requests r ON r.id = s.request_id",
    };
    struct buffer told = buffer_make(256 << 20);
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(database, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        tell_rows(db, queries[i], &told);
    }
    sqlite3_close(db);
    buffer_append(&told, "", 1);
    assert_false(told.failed);
    return told;
}

static void same_rows(void **state) {
    (void)state;
    struct buffer told[3];
    static const uint32_t threads[3] = {1, 2, 4};
    signal(SIGPIPE, SIG_IGN);
    assert_non_null(mkdtemp(folder));
    offset = (clock_wall() / SECOND / 3600 * 3600 - 1800) * SECOND - BEGIN;
    for (uint32_t i = 0; i < NODES; i++) {
        script(i);
    }
    for (int i = 0; i < 3; i++) {
        start(threads[i]);
        run_nodes();
        end_collector();
        told[i] = tell();
    }
    for (int i = 1; i < 3; i++) {
        if (strcmp((const char *)told[0].data, (const char *)told[i].data) != 0) {
            for (int k = 0; k < 3; k++) {
                char path[160];
                snprintf(path, sizeof path, "%s/%u.txt", folder, threads[k]);
                FILE *f = fopen(path, "w");
                fwrite(told[k].data, 1, told[k].len - 1, f);
                fclose(f);
            }
            fail_msg("other rows with %u threads; see %s", threads[i], folder);
        }
    }
    const char *one = (const char *)told[0].data;
    assert_non_null(strstr(one, "|_remote|"));
    assert_non_null(strstr(one, "|own6_39|"));
    assert_non_null(strstr(one, "|node6@host|"));
    for (int i = 0; i < 3; i++) {
        buffer_free(&told[i]);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        buffer_free(&sent[i]);
    }
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
