// SPDX-License-Identifier: Apache-2.0
// Profiles of databases that somebody has edited: whatever stands in them, they are refused with a
// reason, or drawn in each form as its readers take it.
#include "profile_fixture.h"
#include "store_fixture.h"

#include <zlib.h>

#include "pprof.pb-c.h"
#include "report/flame.h"
#include "report/longest.h"
#include "store/keep_profile.h"

enum { FILE_BYTES = 4 << 20, ROUNDS = 400 };

static sqlite3 *memory; // for SQLite's functions
static char edited_db[96];
static uint8_t whole[FILE_BYTES]; // the database as it was written
static size_t whole_len;

// -- a database -----------------------------------------------------------------------------------

static void add(struct profile *p, const char *identity, const char *stack, int64_t ns) {
    fixture_weight(p, "shop_http", identity, stack, 2, ns);
    fixture_process(p, "shop_http", identity, stack[4] == 'd' ? "writer" : NULL, stack, 1, ns / 4);
}

static void write_whole(void) {
    struct profile p;
    struct store *s = fixture_open();
    int64_t id;
    assert_true(profile_init(&p));
    p.head = (struct profile_head){.node = "shop@host",
                                   .begin_ns = 1763640000000000000,
                                   .end_ns = 1763640002500000000,
                                   .settings = "{}"};
    p.counts = (struct profile_counts){.requests = 1, .duration_ns = 9000};
    profile_module(&p, slice_text("shop_http"), slice_text("shop"));
    add(&p, "create", "a;b;c;waiting", 5000);
    add(&p, "create", "a;b;asleep", 500);
    add(&p, "create", "a;b;d;e;f", 3000);
    add(&p, "read", "a;g;gc", 300);
    add(&p, "read", "a;g;d", 4000);
    uint16_t line = timeline_line(&p.timeline, 77), other = timeline_line(&p.timeline, 78);
    for (uint32_t i = 0; i < p.stacks.stack_count; i++) {
        struct timeline_event e = {1000 * i, i, i % 3 ? line : other, (uint8_t)(i % 3)};
        timeline_add(&p.timeline, &e, 100);
    }
    p.timeline_ns = 9000;
    assert_true(store_keep_profile(s, &p, &id));
    store_close(s);
    profile_free(&p);
    FILE *f = fopen(fixture_db, "rb");
    assert_non_null(f);
    whole_len = fread(whole, 1, sizeof whole, f);
    assert_in_range(whole_len, 1, sizeof whole - 1);
    fclose(f);
}

static int prepare(void **state) {
    fixture_setup(state);
    snprintf(edited_db, sizeof edited_db, "%s/edited.db", fixture_dir);
    write_whole();
    return sqlite3_open(":memory:", &memory);
}

static int forget(void **state) {
    sqlite3_close(memory);
    return fixture_teardown(state);
}

// The database as it was, to be edited.
static sqlite3 *edit(void) {
    sqlite3 *db;
    FILE *f = fopen(edited_db, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(whole, 1, whole_len, f), whole_len);
    fclose(f);
    assert_int_equal(sqlite3_open(edited_db, &db), SQLITE_OK);
    return db;
}

// -- what readers take ----------------------------------------------------------------------------

static void is_json(const struct buffer *file) {
    sqlite3_stmt *asking;
    sqlite3_prepare_v2(memory, "SELECT json_valid(?1)", -1, &asking, NULL);
    sqlite3_bind_text(asking, 1, (const char *)file->data, (int)file->len, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(asking), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(asking, 0), 1);
    sqlite3_finalize(asking);
}

// Each line is printable UTF-8, and as it should be.
static void is_text(struct buffer *file, bool (*fits)(const char *line)) {
    char *text = (char *)file->data, *rest = text;
    assert_int_equal(strlen(text), file->len);
    for (char *line; (line = strsep(&rest, "\n"));) {
        assert_true(names_is_clean(slice_text(line + (line[0] == '\t'))));
        if (!fits(line)) {
            fail_msg("wrong: %s", line);
        }
    }
}

static bool is_collapsed(const char *line) {
    const char *number = strrchr(line, ' ');
    return line[0] == 0 || (number && number > line && number[1] &&
                            number[1 + strspn(number + 1, "0123456789")] == 0);
}

static bool is_callgrind(const char *line) {
    return strncmp(line, "fn=", 3) == 0 || strncmp(line, "cfn=", 4) == 0 ||
           strncmp(line, "calls=", 6) == 0 || strncmp(line, "fl=", 3) == 0 ||
           line[strspn(line, "0123456789 ")] == 0 || strchr(line, ':') || line[0] == '#';
}

static int64_t perf_time; // of the sample before

static bool is_perf(const char *line) {
    long long s, ns, period;
    if (sscanf(line, "kprof 1/1 [000] %lld.%9lld: %lld ", &s, &ns, &period) == 3) {
        int64_t before = perf_time;
        perf_time = s * 1000000000 + ns;
        return perf_time > before && period > 0;
    }
    return line[0] == 0 || (strncmp(line, "\tffffffff ", 10) == 0 && line[strlen(line) - 1] == ')');
}

static bool is_xml(const char *line) {
    int open = 0;
    for (; *line && open >= 0 && open <= 1; line++) {
        open += *line == '<' ? 1 : *line == '>' ? -1 : 0;
    }
    return open >= 0 && open <= 1;
}

static void is_svg(struct buffer *file) {
    char *script = strstr((char *)file->data, "<script>");
    assert_non_null(script);
    *script = 0;
    file->len = (size_t)(script - (char *)file->data);
    is_text(file, is_xml);
}

static void is_pprof(const struct buffer *file) {
    static uint8_t bytes[8 << 20];
    z_stream zip = {.next_in = file->data,
                    .avail_in = (uInt)file->len,
                    .next_out = bytes,
                    .avail_out = sizeof bytes};
    assert_int_equal(inflateInit2(&zip, 15 + 16), Z_OK);
    assert_int_equal(inflate(&zip, Z_FINISH), Z_STREAM_END);
    inflateEnd(&zip);
    Pprof__Profile *p = pprof__profile__unpack(NULL, sizeof bytes - zip.avail_out, bytes);
    assert_non_null(p);
    for (size_t i = 0; i < p->n_function; i++) {
        assert_in_range(p->function[i]->name, 1, p->n_string_table - 1);
        assert_in_range(p->function[i]->filename, 0, p->n_string_table - 1);
    }
    for (size_t i = 0; i < p->n_sample; i++) {
        assert_true(p->sample[i]->n_location_id > 0);
        for (size_t k = 0; k < p->sample[i]->n_location_id; k++) {
            assert_in_range(p->sample[i]->location_id[k], 1, p->n_location);
        }
        for (size_t k = 0; k < p->sample[i]->n_value; k++) {
            assert_true(p->sample[i]->value[k] >= 0);
        }
        for (size_t k = 0; k < p->sample[i]->n_label; k++) {
            assert_in_range(p->sample[i]->label[k]->str, 1, p->n_string_table - 1);
        }
    }
    assert_true(p->time_nanos >= 0 && p->duration_nanos >= 0);
    pprof__profile__free_unpacked(p, NULL);
}

// What a browser would read as an element ends, or begins, only where we write one.
static void is_html(const struct buffer *file) {
    static const char begin[] = "<script type=\"application/json\" id=\"data\">",
                      end[] = "</script>";
    char *data = strstr((char *)file->data, begin);
    assert_non_null(data);
    data += strlen(begin);
    char *rest = strstr(data, end);
    assert_non_null(rest);
    assert_null(memchr(data, '<', (size_t)(rest - data)));
    struct buffer json = {.data = (uint8_t *)data, .len = (size_t)(rest - data)};
    *rest = 0;
    is_json(&json);
}

static void check(const struct flame_answer *a, enum flame_format format) {
    struct buffer file = buffer_make(64 << 20);
    assert_true(flame_file(&a->drawing, format, &file));
    buffer_append(&file, "", 1);
    file.len--;
    switch (format) {
    case FLAME_HTML:
        is_html(&file);
        break;
    case FLAME_SPEEDSCOPE:
    case FLAME_CHROME:
        is_json(&file);
        break;
    case FLAME_COLLAPSED:
        is_text(&file, is_collapsed);
        break;
    case FLAME_CALLGRIND:
        is_text(&file, is_callgrind);
        break;
    case FLAME_PERF:
        perf_time = -1;
        is_text(&file, is_perf);
        break;
    case FLAME_SVG:
        is_svg(&file);
        break;
    default:
        is_pprof(&file);
    }
    buffer_free(&file);
}

// Draws the edited profile in all forms. False: it was refused.
static bool drawn(const struct flame_question *question) {
    static struct flame_answer a;
    char error[STORE_ERROR_BYTES];
    struct store *s;
    assert_int_equal(store_open_reader(edited_db, &s, error), STORE_OK);
    enum flame_found found = flame_ask(s, question, &a);
    if (found == FLAME_FOUND) {
        struct buffer json = buffer_make(64 << 20);
        for (enum flame_format format = 0; format < FLAME_FORMATS; format++) {
            check(&a, format);
        }
        flame_json(&a, &json);
        is_json(&json);
        buffer_reset(&json);
        struct longest longest;
        assert_true(longest_calls(&a.profile, 5, &longest));
        longest_json(&longest, a.id, &json);
        is_json(&json);
        longest_free(&longest);
        buffer_free(&json);
    } else if (found != FLAME_OTHER_KIND) {
        assert_int_equal(found, FLAME_UNREAD);
        assert_true(strlen(store_error(s)) > 0);
    }
    flame_answer_free(&a);
    store_close(s);
    return found == FLAME_FOUND;
}

static bool drawn_after(const char *sql) {
    sqlite3 *db = edit();
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
        fail_msg("%s: %s", sql, error);
    }
    sqlite3_close(db);
    return drawn(&(struct flame_question){.profile = "1"});
}

// -- edits ----------------------------------------------------------------------------------------

static void not_edited(void **state) {
    (void)state;
    assert_true(drawn_after(""));
}

// What processes did instead of running lies on functions, but a file may say anything.
static void deep(void **state) {
    (void)state;
    for (int kind = FRAME_FUNCTION; kind <= FRAME_GROUP; kind++) {
        char sql[800];
        snprintf(sql, sizeof sql,
                 "UPDATE profile_frame_rows SET kind = %d WHERE frame = 1;"
                 "WITH RECURSIVE n(i) AS (SELECT max(stack) + 1 FROM profile_stack_rows UNION ALL "
                 "SELECT i + 1 FROM n LIMIT 5000) INSERT INTO profile_stack_rows "
                 "SELECT 1, i, i - 1, i, 1 FROM n;"
                 "INSERT INTO profile_value_rows SELECT 1, 0, 1, max(stack), 77, 77 FROM "
                 "profile_stack_rows;"
                 "UPDATE profile_value_rows SET identity_id = (SELECT min(id) FROM identity_names) "
                 "WHERE self = 77",
                 kind);
        assert_true(drawn_after(sql));
    }
}

// Weights whose sum is no number that we have.
static void heavy(void **state) {
    (void)state;
    assert_false(drawn_after("UPDATE profile_value_rows SET self = 9223372036854775807"));
    assert_false(drawn_after("UPDATE profile_value_rows SET self = 9223372036854775807 "
                             "WHERE metric = 1"));
    assert_false(drawn_after("UPDATE profile_value_rows SET self = -1"));
    assert_false(drawn_after("UPDATE profile_value_rows SET self = 9007199254740992 WHERE stack = "
                             "(SELECT max(stack) FROM profile_value_rows WHERE self > 0)"));
    assert_true(drawn_after("UPDATE profile_value_rows SET self = 9007199254000000 WHERE stack = "
                            "(SELECT max(stack) FROM profile_value_rows WHERE self > 0)"));
}

static void times(void **state) {
    (void)state;
    assert_true(drawn_after("UPDATE profile_rows SET begin_ns = 9223372036854775807, end_ns = "
                            "-9223372036854775807 - 1"));
    assert_true(drawn_after("UPDATE profile_rows SET begin_ns = -9223372036854775807 - 1, end_ns = "
                            "9223372036854775807"));
}

static void texts(void **state) {
    (void)state;
    assert_true(drawn_after("UPDATE node_names SET name = CAST(x'3c1b5b33316dff0a263c2f673e' AS "
                            "TEXT); UPDATE profile_rows SET name = CAST(x'5d5d3e00ff01' AS TEXT);"
                            "UPDATE profile_frame_rows SET name = CAST(x'0a3bff20' AS TEXT) || "
                            "frame, module = CAST(x'0a28ff29' AS TEXT)"));
}

// A random value: a number, a text or bytes, in SQL.
static void put_value(uint64_t r, char *out) {
    static const char *const values[] = {"0",
                                         "1",
                                         "-1",
                                         "2",
                                         "3",
                                         "7",
                                         "200",
                                         "65535",
                                         "65536",
                                         "15000",
                                         "60000",
                                         "4294967295",
                                         "4294967296",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "4611686018427387904",
                                         "''",
                                         "'a;b 1'",
                                         "'+->(x)'",
                                         "'<g>&\"''>]]>'",
                                         "CAST(x'00' AS TEXT)",
                                         "CAST(x'ff0a1b' AS TEXT)",
                                         "replace(hex(zeroblob(200)), '0', char(233))",
                                         "x''",
                                         "x'00'",
                                         "randomblob(40)",
                                         "zeroblob(100000)",
                                         "NULL"};
    strcpy(out, values[r % (sizeof values / sizeof *values)]);
}

static void change(sqlite3 *db, uint64_t *random) {
    static const struct {
        const char *table, *column, *key;
    } places[] = {{"profile_rows", "kind", "id"},
                  {"profile_rows", "name", "id"},
                  {"profile_rows", "begin_ns", "id"},
                  {"profile_rows", "end_ns", "id"},
                  {"profile_rows", "requests", "id"},
                  {"profile_rows", "duration_ns", "id"},
                  {"profile_rows", "parallel_ns", "id"},
                  {"profile_rows", "missing_ns", "id"},
                  {"profile_rows", "longest_ns", "id"},
                  {"profile_rows", "longest", "id"},
                  {"profile_frame_rows", "kind", "frame"},
                  {"profile_frame_rows", "name", "frame"},
                  {"profile_frame_rows", "module", "frame"},
                  {"profile_frame_rows", "application", "frame"},
                  {"profile_frame_rows", "frame", "frame"},
                  {"profile_stack_rows", "stack", "stack"},
                  {"profile_stack_rows", "parent", "stack"},
                  {"profile_stack_rows", "frame", "stack"},
                  {"profile_process_rows", "process", "stack"},
                  {"profile_process_rows", "ns", "stack"},
                  {"profile_process_rows", "stack", "stack"},
                  {"profile_process_names", "name", "process"},
                  {"profile_process_names", "process", "process"},
                  {"profile_value_rows", "self", "stack"},
                  {"profile_value_rows", "stack", "stack"},
                  {"profile_value_rows", "metric", "stack"},
                  {"identity_names", "name", "id"},
                  {"node_names", "name", "id"}};
    uint64_t r = random_u64(random);
    char value[80], sql[400];
    put_value(r >> 32, value);
    size_t place = r % (sizeof places / sizeof *places);
    if (strcmp(places[place].column, "longest") == 0 && r & 1 << 20) {
        snprintf(value, sizeof value,
                 "CAST(substr(longest, 1, %d) || x'%02x' || substr(longest, %d) AS BLOB)",
                 (int)(r >> 21 & 31), (int)(r >> 40 & 255), (int)(r >> 48 & 31));
    }
    int key = strcmp(places[place].key, "id") == 0 ? 1 : (int)(r >> 26 & 7);
    snprintf(sql, sizeof sql, "UPDATE %s SET %s = %s WHERE %s = %d", places[place].table,
             places[place].column, value, places[place].key, key);
    sqlite3_exec(db, sql, NULL, NULL, NULL); // what does not fit its column is refused there
}

static void edited(void **state) {
    (void)state;
    uint64_t random = 12;
    uint32_t refused = 0;
    for (int i = 0; i < ROUNDS; i++) {
        sqlite3 *db = edit();
        for (uint64_t n = random_u64(&random) % 4 + 1; n > 0; n--) {
            change(db, &random);
        }
        sqlite3_close(db);
        uint64_t r = random_u64(&random);
        struct flame_question question = {
            .profile = "1",
            .before = r & 64 ? "1" : NULL,
            .weighed = {.metric = (enum flame_metric)(r % FLAME_METRICS),
                        .group = (enum flame_group)((r >> 3) % 3),
                        .no_asleep = r & 16,
                        .only = r & 32 ? "create" : NULL}};
        refused += !drawn(&question);
    }
    print_message("%u of %d refused\n", refused, ROUNDS);
    assert_in_range(refused, ROUNDS / 20, ROUNDS - ROUNDS / 4);
}

#define A_DATABASE(test) cmocka_unit_test_setup_teardown(test, prepare, forget)

int main(void) {
    const struct CMUnitTest tests[] = {A_DATABASE(not_edited), A_DATABASE(deep),
                                       A_DATABASE(heavy),      A_DATABASE(times),
                                       A_DATABASE(texts),      A_DATABASE(edited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
