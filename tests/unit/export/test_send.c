// SPDX-License-Identifier: Apache-2.0
// Batches: read out of a database in parts, sent to an engine that refuses some rows, all, or has
// no room; and what is found out about the engine before.
#include "engine_fixture.h"
#include "store_fixture.h"

#include <zlib.h>

#include "export/send.h"
#include "export/statements.h"

static const int64_t NOON = 1763640000;
enum { SQL_BYTES = 8192, ROWS_BYTES = 16 << 20, HUGE_TEXT = 300 };

// -- an engine of our own -------------------------------------------------------------------------

static struct engine server;
static struct http *http;
static struct sender sender;
static struct batch batch, ahead; // ahead: read behind it

// What it does, and what it has done.
static struct {
    const char *refuses; // rows with this text in them
    const char *with;    // and says this
    const char *always;  // answers every insert so
    const char *raw;     // or with these bytes, and so often these
    const char *more;
    int times;
    const char *version;
    bool has_tables;
    bool keeps;  // its own signs of life
    bool packed; // the last insert's rows came so
    int inserts, taken, creates, drops;
    uint64_t rows_taken;
    char settings[200];
    char last[SQL_BYTES];
} engine;

static size_t unpack(const struct engine_request *r, uint8_t *out) {
    z_stream zip = {.next_in = (Bytef *)r->body, .avail_in = (uInt)r->len, .next_out = out};
    zip.avail_out = ROWS_BYTES;
    assert_int_equal(inflateInit2(&zip, 16 + MAX_WBITS), Z_OK);
    assert_int_equal(inflate(&zip, Z_FINISH), Z_STREAM_END);
    inflateEnd(&zip);
    return zip.total_out;
}

static size_t times(const uint8_t *in, size_t len, const char *text) {
    size_t n = 0;
    for (const uint8_t *at = in; (at = memmem(at, len - (size_t)(at - in), text, strlen(text)));
         at++) {
        n++;
    }
    return n;
}

static void take_insert(int fd, const struct engine_request *r) {
    uint8_t *rows = malloc(ROWS_BYTES);
    engine.packed = strcasestr(r->head, "\r\nContent-Encoding: gzip\r\n");
    size_t len = engine.packed ? unpack(r, rows) : r->len;
    if (!engine.packed) {
        memcpy(rows, r->body, len);
    }
    engine.inserts++;
    if (engine.raw) {
        engine_write(fd, engine.raw, strlen(engine.raw));
        for (int i = 0; i < engine.times; i++) {
            engine_write(fd, engine.more, strlen(engine.more));
        }
    } else if (engine.always) {
        engine_say(fd, 500, engine.always);
    } else if (engine.refuses && times(rows, len, engine.refuses) > 0) {
        engine_say(fd, 500, engine.with);
    } else {
        engine.taken++;
        engine.rows_taken += times(rows, len, "collector-name");
        engine_say(fd, 200, "");
    }
    free(rows);
}

static void be_engine(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    snprintf(engine.last, sizeof engine.last, "%.*s", (int)r->len, (const char *)r->body);
    if (strstr(r->head, "query=INSERT")) {
        const char *setting = strchr(r->head, '&');
        snprintf(engine.settings, sizeof engine.settings, "%.*s",
                 setting ? (int)strcspn(setting, " ") : 0, setting ? setting : "");
        take_insert(fd, r);
    } else if (strstr(engine.last, "version()") == engine.last + 7) {
        engine_say(fd, 200, engine.version);
    } else if (strncmp(engine.last, "EXISTS", 6) == 0) {
        engine_say(fd, 200, engine.has_tables ? "1\n" : "0\n");
    } else if (strncmp(engine.last, "CREATE", 6) == 0) {
        engine.creates++;
        engine_say(fd, 200, "");
    } else if (strncmp(engine.last, "ALTER", 5) == 0) {
        engine.drops++;
        engine_say(fd, 200, "");
    } else if (strstr(engine.last, "system.parts")) {
        engine_say(fd, 200, "tier_stats\t10-20250101\nledger\t60-202501\nx\ty'; DROP\n");
    } else if (strstr(engine.last, "countIf")) {
        engine_say(fd, 200, engine.keeps ? "1763640000\t2\n" : "0\t0\n");
    } else {
        engine_say(fd, 200, "");
    }
}

static int setup(void **state) {
    fixture_setup(state);
    memset(&engine, 0, sizeof engine);
    engine.version = "18.16.1\n";
    engine.with = "Code: 395, e.displayText() = DB::Exception: I do not like it";
    engine.has_tables = engine.keeps = true;
    engine_start(&server, be_engine, NULL);
    const struct http_options o = {.target = &server.target};
    http = http_new(&o);
    sender_init(&sender, http, "kprof");
    batch_init(&batch, "collector-name");
    batch_init(&ahead, "collector-name");
    batch.most = ahead.most = LIMIT_EXPORT_BATCH_LEAST;
    struct store *s = fixture_open();
    assert_true(store_follow(s));
    store_close(s);
    return 0;
}

static int teardown(void **state) {
    engine_stop(&server);
    sender_free(&sender);
    batch_free(&batch);
    batch_free(&ahead);
    http_free(http);
    return fixture_teardown(state);
}

// -- reading --------------------------------------------------------------------------------------

// Rows of one bucket, of so many identities of a name, and _total.
static void write_rows(int64_t bucket, const char *identity, int count) {
    struct stats *set = stats_new();
    char name[80];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s%d", identity, i);
        fixture_call(set, bucket, name, "db", 1000, false);
    }
    fixture_ledger(set, bucket)->requests_complete = (uint64_t)count;
    fixture_write(set);
}

static bool read_behind(struct batch *b, const struct batch *before) {
    char error[STORE_ERROR_BYTES];
    struct changes *c = changes_open(fixture_db, error);
    assert_non_null(c);
    if (!batch_read(b, c, CHANGES_ALL, before)) {
        fail_msg("%s", changes_error(c));
    }
    changes_close(c);
    return b->rows > 0 || b->whole > 0;
}

static bool read_batch(void) {
    return read_behind(&batch, NULL);
}

// Writes down that it was sent, as the writer would.
static void note_of(const struct batch *b) {
    const struct change_report report = {.database_id = b->database_id,
                                         .sent = b->marks,
                                         .sent_count = b->whole,
                                         .refused = b->refused,
                                         .refusals = b->refusals,
                                         .refusal_count = b->refusal_count};
    struct store *s = fixture_open();
    assert_true(store_sent(s, &report));
    store_close(s);
}

static void note(void) {
    note_of(&batch);
}

static void read_and_sent(void **state) {
    (void)state;
    write_rows(NOON, "create", 3);
    assert_true(read_batch());
    // 3 identities and _total, and a ledger, at three resolutions
    assert_int_equal(batch.rows, 3 * 5);
    assert_int_equal(batch.whole, 3);
    assert_int_equal(sender_send(&sender, &batch), SENT_ALL);
    assert_int_equal(engine.inserts, 2); // a table and batch
    assert_int_equal(engine.rows_taken, 15);
    assert_int_equal(sender.rows, 15);
    assert_string_equal(engine.settings, "");
    assert_true(engine.packed);
    note();
    assert_false(read_batch());
    sender.near = true; // as it is, where nothing is won by packing
    sender.major = 23;
    write_rows(NOON, "create", 1);
    assert_true(read_batch());
    assert_int_equal(sender_send(&sender, &batch), SENT_ALL);
    assert_string_equal(engine.settings, "&async_insert=0");
    assert_false(engine.packed);
    assert_int_equal(engine.rows_taken, 2 * 15);
}

// A bucket with more rows than a batch takes goes in parts, and its mark with the last of them.
static void large_buckets(void **state) {
    (void)state;
    enum { IDENTITIES = 250, TIERS = 20, SETS = 12 };
    for (int k = 0; k < SETS; k++) {
        struct stats *set = stats_new();
        for (int i = 0; i < IDENTITIES * TIERS; i++) {
            char name[40], tier[40];
            snprintf(name, sizeof name, "identity%d", i % IDENTITIES);
            snprintf(tier, sizeof tier, "tier%d", i / IDENTITIES + k * TIERS);
            stats_count(fixture_row(set, NOON, "shop@host", name, tier), 1000);
        }
        fixture_write(set);
    }
    free(fixture_ask(fixture_db, "DELETE FROM export_marks WHERE resolution_s <> 10"));
    write_rows(NOON + 10, "create", 1);
    char *rows =
        fixture_ask(fixture_db, "SELECT (SELECT count(*) FROM stat_rows WHERE resolution_s "
                                "= 10 OR bucket_start <> 1763640000) + (SELECT count(*) "
                                "FROM stat_rows WHERE resolution_s > 10)+ (SELECT count(*) "
                                "FROM ledger_rows)");
    uint64_t wanted = strtoull(rows, NULL, 10);
    struct batch *now = &batch, *next = &ahead;
    int batches = 0;
    bool more = read_behind(now, NULL);
    while (more) {
        assert_true(now->rows <= LIMIT_EXPORT_BATCH_ROWS);
        assert_true(now->bytes <= now->most + LIMIT_EXPORT_ROW_BYTES);
        more = read_behind(next, now); // before anybody knows what becomes of this one
        if (batches == 1) {            // it fails: all of that bucket again
            uint64_t before = engine.rows_taken;
            engine.always = "Code: 241. DB::Exception: Memory limit exceeded";
            assert_int_equal(sender_send(&sender, now), SENT_LATER);
            engine.always = NULL;
            assert_int_equal(engine.rows_taken, before);
            engine.rows_taken = 0;
            more = read_behind(next, NULL);
        } else {
            assert_int_equal(sender_send(&sender, now), SENT_ALL);
            note_of(now);
        }
        struct batch *sent = now;
        now = next;
        next = sent;
        assert_true(++batches < 20);
    }
    assert_true(batches > 3);
    fixture_expect("SELECT count(*) FROM export_marks", "0");
    assert_int_equal(engine.rows_taken, wanted);
    free(rows);
}

// What a batch has is not in the one behind it, unless it has changed since: then it is sent again,
// and what was sent first does not take its mark away.
static void read_while_one_is_sent(void **state) {
    (void)state;
    write_rows(NOON, "create", 3);
    assert_true(read_batch());
    assert_false(read_behind(&ahead, &batch));
    write_rows(NOON, "create", 3);         // the same buckets
    write_rows(NOON + 86400, "create", 3); // others
    assert_true(read_behind(&ahead, &batch));
    assert_int_equal(ahead.whole, 6);
    assert_int_equal(ahead.rows, 2 * 15);
    note();
    fixture_expect("SELECT count(*) FROM export_marks", "6");
    note_of(&ahead);
    fixture_expect("SELECT count(*) FROM export_marks", "0");
    // of another file nothing is left out
    write_rows(NOON, "create", 3);
    assert_true(read_batch());
    batch.database_id++;
    assert_true(read_behind(&ahead, &batch));
    assert_int_equal(ahead.rows, 15);
}

// The first batch is refused in part while the next one is there: what was refused is written down
// with the first, and the next one has no row of it.
static void refused_while_next_is_read(void **state) {
    (void)state;
    write_rows(NOON, "evil", 1);
    write_rows(NOON, "create", 5);
    assert_true(read_batch());
    write_rows(NOON + 86400, "create", 3);
    engine.refuses = "evil";
    assert_true(read_behind(&ahead, &batch));
    uint32_t rows = batch.rows, next_rows = ahead.rows;
    assert_int_equal(sender_send(&sender, &batch), SENT_ALL);
    note();
    assert_int_equal(batch.refused, 3);
    assert_int_equal(ahead.refused, 0);
    assert_int_equal(sender_send(&sender, &ahead), SENT_ALL);
    note_of(&ahead);
    assert_int_equal(engine.rows_taken, rows - 3 + next_rows);
    fixture_expect("SELECT count(*) FROM export_refusals", "3");
    fixture_expect("SELECT count(*) FROM export_marks", "0");
}

static void rows_that_are_none(void **state) {
    (void)state;
    write_rows(NOON, "create", 3);
    free(fixture_ask(fixture_db,
                     "UPDATE stat_rows SET histogram = x'ff' WHERE resolution_s = 60 AND "
                     "identity_id = 2"));
    char sql[HUGE_TEXT];
    snprintf(sql, sizeof sql,
             "UPDATE identity_names SET name = printf('%%.*c', %u, 'x') WHERE id = 1",
             LIMIT_EXPORT_ROW_BYTES + 1);
    free(fixture_ask(fixture_db, sql));
    assert_true(read_batch());
    assert_int_equal(batch.rows, 3 * 5 - 1 - 3);
    assert_int_equal(batch.refused, 1 + 3);
    assert_int_equal(sender_send(&sender, &batch), SENT_ALL);
    note();
    fixture_expect("SELECT group_concat(DISTINCT reason) FROM (SELECT reason FROM export_refusals "
                   "ORDER BY reason)",
                   "a text in it is too long,its histogram is malformed");
    assert_false(read_batch());
}

// -- refusals -------------------------------------------------------------------------------------

static void some_are_refused(void **state) {
    (void)state;
    write_rows(NOON, "create", 60);
    write_rows(NOON, "evil", 2);
    engine.refuses = "evil";
    assert_true(read_batch());
    uint32_t rows = batch.rows;
    assert_int_equal(sender_send(&sender, &batch), SENT_ALL);
    assert_int_equal(batch.refused, 2 * 3);
    assert_int_equal(engine.rows_taken, rows - 6);
    assert_true(engine.inserts < 6 * 2 * 8 + 10); // halves, not one after the other
    note();
    fixture_expect("SELECT count(*) FROM export_refusals AS r JOIN identity_names AS i ON i.id = "
                   "r.key_1 WHERE i.name LIKE 'evil%' AND r.reason LIKE 'Code: 395%like it'",
                   "6");
    fixture_expect("SELECT count(*) FROM export_marks", "0");
}

// Those that come before any that is taken are only suspected until then.
static void the_first_are_refused(void **state) {
    (void)state;
    write_rows(NOON, "evil", 3);
    write_rows(NOON, "create", 20);
    engine.refuses = "evil";
    assert_true(read_batch());
    uint32_t rows = batch.rows;
    assert_int_equal(sender_send(&sender, &batch), SENT_ALL);
    assert_int_equal(batch.refused, 3 * 3);
    assert_int_equal(engine.rows_taken, rows - 9);
    note();
    fixture_expect(
        "SELECT count(DISTINCT r.key_1 || ' ' || r.resolution_s) FROM export_refusals AS r "
        "JOIN identity_names AS i ON i.id = r.key_1 WHERE i.name LIKE 'evil%'",
        "9");
}

// Where none is taken it is not the rows: nothing is set aside, until another one is taken.
static void all_are_refused(void **state) {
    (void)state;
    write_rows(NOON, "create", 100);
    engine.refuses = "shop@host"; // in every row
    assert_true(read_batch());
    assert_int_equal(sender_send(&sender, &batch), SENT_LATER);
    assert_int_equal(batch.refused, 0);
    assert_true(engine.inserts < 40);
    assert_non_null(strstr(sender.why, "I do not like it"));
    // one alone
    free(fixture_ask(fixture_db, "DELETE FROM export_marks; "));
    write_rows(NOON + 3600, "evil", 0);
    engine.refuses = "shop@host";
    assert_true(read_batch());
    assert_int_equal(sender_send(&sender, &batch), SENT_LATER);
    assert_int_equal(batch.refused, 0);
}

static void not_the_rows(void **state) {
    (void)state;
    write_rows(NOON, "create", 10);
    assert_true(read_batch());
    engine.always = "Code: 252, e.displayText() = DB::Exception: Too many parts (300)";
    assert_int_equal(sender_send(&sender, &batch), SENT_LATER);
    assert_int_equal(engine.inserts, 1);
    engine.always = "Code: 60, e.displayText() = DB::Exception: Table kprof.x doesn't exist.";
    assert_int_equal(sender_send(&sender, &batch), SENT_MISSING);
    assert_int_equal(engine.inserts, 2);
    engine.always = "hello";
    assert_int_equal(sender_send(&sender, &batch), SENT_LATER);
    assert_int_equal(batch.refused, 0);
}

// What stands in an engine's place, or an engine gone wrong: no row counts as taken or as refused,
// and what is told is one clean line.
static void hostile_answers(void **state) {
    (void)state;
    static const struct {
        const char *raw, *more;
        int times;
    } all[] = {
        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "", 0},
        {"HTTP/1.1 307 Go\r\nLocation: //x\r\nContent-Length: 0\r\n\r\n", "", 0},
        {"HTTP/1.1 204 No Content\r\n\r\n", "", 0},
        {"HTTP/1.1 200 OK\r\n\r\n<html>Sign in, please\033[2J\r\n</html>", "", 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "", 0},
        {"HTTP/1.1 200 OK\r\n\r\n", "so much to say ", 1 << 20},
        {"HTTP/1.1 500 No\r\n\r\n", "an error without end\n", 1 << 20},
        {"HTTP/1.1 500 No\r\n\r\nCode: 241. ", "\001\002\377 memory ", 1 << 20},
        {"HTTP/1.1 200 OK\r\n", "X-Word: word\r\n", 1 << 20},
        {"", "HTTP/1.1 100 Continue\r\n\r\n", 1 << 20},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "", 0},
        {"HTTP/1.1 200 OK\r\nX-ClickHouse-Exception-Code: 99999999999999999999\r\n"
         "Content-Length: 0\r\n\r\n",
         "", 0},
        {"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n", "", 0},
        {"220 mail.example ESMTP\r\n", "", 0},
        {"", "", 0},
    };
    write_rows(NOON, "create", 100);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        engine.raw = all[i].raw;
        engine.more = all[i].more;
        engine.times = all[i].times;
        engine.inserts = 0;
        assert_true(read_batch());
        sender.why[0] = 0;
        assert_int_equal(sender_send(&sender, &batch), SENT_LATER);
        assert_int_equal(batch.refused, 0);
        assert_int_equal(sender.rows, 0);
        assert_in_range(engine.inserts, 1, 40);
        assert_in_range(strlen(sender.why), 4, sizeof sender.why - 1);
        assert_null(strpbrk(sender.why, "\r\n\033\001"));
    }
    // and once it is one, all goes on
    engine.raw = NULL;
    assert_true(read_batch());
    assert_int_equal(sender_send(&sender, &batch), SENT_ALL);
    assert_int_equal(sender.rows, batch.rows);
}

// -- setting up -----------------------------------------------------------------------------------

static void set_up(void **state) {
    (void)state;
    assert_true(sender_set_up(&sender));
    assert_int_equal(engine.creates, 0);
    assert_int_equal(sender.major, 18);
    engine.has_tables = false;
    assert_true(sender_set_up(&sender));
    assert_int_equal(engine.creates, 1 + CHANGE_TABLES + 1); // the database, too
    engine.version = "<html>\n";
    assert_false(sender_set_up(&sender));
    assert_string_equal(sender.why, "what answers there is no ClickHouse");
}

static void signs_of_life(void **state) {
    (void)state;
    const struct statement_self self = {"kprof", "it's one", 1, 2, "", 3};
    int64_t twin_s = 0;
    assert_true(sender_beat(&sender, &self, &twin_s));
    assert_int_equal(twin_s, NOON);
    engine.keeps = false; // what says yes to all, and has nothing
    assert_false(sender_beat(&sender, &self, &twin_s));
    assert_string_equal(sender.why, "it does not keep what it is given");
}

static void old_partitions(void **state) {
    (void)state;
    sender.major = 18;
    assert_int_equal(sender_drop_old(&sender), 2); // of the three lines one is none
    assert_int_equal(engine.drops, 2);
    assert_string_equal(engine.last, "ALTER TABLE kprof.ledger DROP PARTITION ID '60-202501'");
    sender.major = 23;
    assert_int_equal(sender_drop_old(&sender), 0);
    assert_int_equal(engine.drops, 2);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {CASE(read_and_sent),
                                       CASE(large_buckets),
                                       CASE(rows_that_are_none),
                                       CASE(read_while_one_is_sent),
                                       CASE(refused_while_next_is_read),
                                       CASE(some_are_refused),
                                       CASE(the_first_are_refused),
                                       CASE(all_are_refused),
                                       CASE(not_the_rows),
                                       CASE(hostile_answers),
                                       CASE(set_up),
                                       CASE(signs_of_life),
                                       CASE(old_partitions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
