// SPDX-License-Identifier: Apache-2.0
#include "report/flame_file.h"

#include <zlib.h>

#include "base/text_amount.h"
#include "pprof.pb-c.h"
#include "profile_fixture.h"
#include "sample_script.h"
#include "unit.h"

static struct profile profile;
static struct flame_tree tree;
static struct buffer out;

// Adds a weight of a stack, "a;b;c".
static void add(const char *stack, uint64_t calls, int64_t ns) {
    fixture_weight(&profile, "shop_http", NULL, stack, calls, ns);
}

static int prepare(void **state) {
    (void)state;
    assert_true(profile_init(&profile) && flame_tree_init(&tree));
    out = buffer_make(64 << 20);
    return 0;
}

static int forget(void **state) {
    (void)state;
    flame_tree_free(&tree);
    profile_free(&profile);
    buffer_free(&out);
    return 0;
}

static const char *file(enum flame_format format, enum flame_metric metric) {
    static const char *const notes[] = {"20 requests of <shop@host>", "asleep is left out", NULL};
    struct flame_options options = {.metric = metric};
    struct flame_drawing d = {.tree = &tree,
                              .weighed = options,
                              .title = "create & \"read\"",
                              .notes = notes,
                              .started_ns = 1700000000000000000};
    assert_true(flame_tree_add(&tree, &profile, &options, FLAME_AFTER));
    assert_true(flame_tree_finish(&tree));
    assert_true(flame_file(&d, format, &out));
    buffer_append(&out, "", 1);
    return (const char *)out.data;
}

static void a_request(void) {
    add("shop:handle/1", 1, 2000400);
    add("shop:handle/1;lists:map/2", 3, 500);
    add("shop:handle/1;-f/1-fun-0-/1 + (x);y", 2, 3000000);
    add("shop:handle/1;waiting", 0, 7000000);
    add("shop:handle/1;lists:map/2;shop:handle/1;lists:map/2", 1, 1000000);
}

static void collapsed(void **state) {
    (void)state;
    a_request();
    assert_string_equal(file(FLAME_COLLAPSED, FLAME_WALL),
                        "shop:handle/1 2000\n"
                        "shop:handle/1;-f/1-fun-0-/1 + (x);y 3000\n"
                        "shop:handle/1;lists:map/2 1\n"
                        "shop:handle/1;lists:map/2;shop:handle/1;lists:map/2 1000\n"
                        "shop:handle/1;waiting 7000\n");
}

static void collapsed_calls(void **state) {
    (void)state;
    add("a", 3, 1);
    add("a;b", 5, 1);
    assert_string_equal(file(FLAME_COLLAPSED, FLAME_CALLS), "a 3\na;b 5\n");
}

static void perf(void **state) {
    (void)state;
    add("shop:handle/1", 1, 2000);
    add("shop:handle/1;-f/1-fun-0-/1 ->+ (x)", 1, 3000);
    assert_non_null(strstr(file(FLAME_PERF, FLAME_WALL),
                           "kprof 1/1 [000] 1700000000.000001998: 2 wall-ns:\n"
                           "\tffffffff shop:handle/1 (shop_http)\n\n"
                           "kprof 1/1 [000] 1700000000.000002000: 2 wall-ns:\n"
                           "\tffffffff shop:handle/1 (shop_http)\n\n"
                           "kprof 1/1 [000] 1700000000.000002002: 2 wall-ns:\n"
                           "\tffffffff -f/1-fun-0-/1 -.. .x. (shop_http)\n"
                           "\tffffffff shop:handle/1 (shop_http)\n\n"));
}

// Samples as many as stacks are heavy, and their periods add up.
static void perf_samples(void **state) {
    (void)state;
    add("a", 1, 250000003);
    add("b", 1, 750000000);
    const char *text = file(FLAME_PERF, FLAME_WALL);
    int64_t sum = 0, samples[2] = {0};
    for (const char *at = text; (at = strstr(at, ": ")); at++) {
        sum += strtoll(at + 2, NULL, 10);
        samples[strchr(at, '\t')[10] == 'b']++;
    }
    assert_int_equal(sum, 1000000003);
    assert_in_range(samples[0], 1249, 1251);
    assert_in_range(samples[1], 3749, 3751);
}

// A call inside of the same call does not count its time twice.
static void callgrind(void **state) {
    (void)state;
    a_request();
    const char *text = file(FLAME_CALLGRIND, FLAME_WALL);
    assert_non_null(strstr(text, "# callgrind format\nversion: 1\n"));
    assert_non_null(strstr(text, "events: wall_ns\nsummary: 13000900\n"));
    assert_non_null(
        strstr(text, "fn=(1) all\n0 0\ncfn=(2) shop:handle/1\ncalls=1 0\n0 13000900\n"));
    assert_non_null(strstr(text, "\nfn=(2)\n0 2000400\n"));
    const char *map = strstr(text, "\nfn=(3)\n0 1000500\n");
    assert_non_null(map);
    assert_non_null(strstr(text, "cfn=(3) lists:map/2\ncalls=4 0\n0 1000500\n"));
    assert_non_null(strstr(map, "cfn=(2)\ncalls=1 0\n0 1000000\n"));
}

static void speedscope(void **state) {
    (void)state;
    add("a", 3, 10);
    add("a;b", 5, 20);
    add("a;waiting", 0, 30);
    const char *text = file(FLAME_SPEEDSCOPE, FLAME_WALL);
    assert_non_null(strstr(text,
                           "\"shared\":{\"frames\":[{\"name\":\"all\"},{\"name\":\"a\",\"file\":"
                           "\"shop_http\"},{\"name\":\"b\",\"file\":\"shop_http\"},"
                           "{\"name\":\"waiting\"}]}"));
    assert_non_null(strstr(text, "{\"type\":\"sampled\",\"name\":\"wall\",\"unit\":\"nanoseconds\","
                                 "\"samples\":[[1],[1,2],[1,3]],\"weights\":[10,20,30],"
                                 "\"startValue\":0,\"endValue\":60}"));
    assert_non_null(strstr(text,
                           "\"name\":\"self\",\"unit\":\"nanoseconds\",\"samples\":[[1],[1,2]],"
                           "\"weights\":[10,20],\"startValue\":0,\"endValue\":30}"));
    assert_non_null(strstr(text,
                           "\"name\":\"waiting\",\"unit\":\"nanoseconds\",\"samples\":[[1,3]],"
                           "\"weights\":[30],"));
    assert_non_null(strstr(text, "\"name\":\"calls\",\"unit\":\"none\",\"samples\":[[1],[1,2]],"
                                 "\"weights\":[3,5],"));
}

static uint32_t stack_of(const char *stack) {
    return fixture_stack(&profile, "shop_http", stack);
}

// The longest request: two processes, of which one sleeps.
static void a_timeline(void) {
    add("a;b", 1, 10);
    uint16_t one = timeline_line(&profile.timeline, 77), two = timeline_line(&profile.timeline, 78);
    const struct timeline_event events[] = {
        {0, stack_of("a"), one, TIMELINE_RUNS},       {1000, stack_of("a;b;c"), one, TIMELINE_RUNS},
        {2000, stack_of("a;b;c"), one, TIMELINE_OUT}, {2500, stack_of("a;x"), two, TIMELINE_RUNS},
        {3000, STACK_ROOT, two, TIMELINE_LEFT},       {3500, stack_of("a;d"), one, TIMELINE_RUNS},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        timeline_add(&profile.timeline, &events[i], 100);
    }
    profile.timeline_ns = 5000;
}

static const char *of_request(enum flame_format format) {
    struct flame_options options = {.metric = FLAME_WALL};
    struct flame_drawing d = {.tree = &tree, .weighed = options, .title = "t", .profile = &profile};
    a_timeline();
    assert_true(flame_tree_add(&tree, &profile, &options, FLAME_AFTER));
    assert_true(flame_tree_finish(&tree));
    assert_true(flame_file(&d, format, &out));
    buffer_append(&out, "", 1);
    return (const char *)out.data;
}

// What the viewer gets, of a profile whose names are hostile, and of one before it.
static void html(void **state) {
    (void)state;
    static struct profile before;
    struct flame_drawing d = {.weighed = {.metric = FLAME_WALL, .no_asleep = true},
                              .notes = (const char *const[]){"</script>", NULL},
                              .profile = &profile,
                              .compared = true,
                              .before = &before,
                              .before_count = 1,
                              .before_name = "profile 1"};
    assert_true(profile_init(&before));
    add("a", 3, 10);
    add("a;<!--<script>", 2, 20);
    add("a;waiting", 0, 30);
    fixture_weight(&before, "shop_http", NULL, "a", 1, 5);
    fixture_weight(&before, "shop_http", NULL, "a;gone", 4, 6);
    strcpy(profile.head.node, "shop@<host>");
    assert_true(flame_file(&d, FLAME_HTML, &out));
    buffer_append(&out, "", 1);
    const char *text = (const char *)out.data;
    assert_non_null(strstr(text, "<title>shop@&lt;host&gt;, "));
    assert_non_null(
        strstr(text, "{\"title\":\"shop@\\u003chost>, 1970-01-01T00:00:00Z\",\"notes\":["
                     "\"\\u003c/script>\"],\"metric\":\"awake\",\"before\":\"profile 1\","
                     "\"names\":[\"all\",\"\",\"a\",\"shop_http\",\"\\u003c!--\\u003cscript>\","
                     "\"waiting\",\"gone\"],\"frames\":{\"name\":[0,2,4,5,6],"
                     "\"module\":[1,3,3,1,3],\"application\":[1,1,1,1,1],\"kind\":[5,0,0,1,0]},"
                     "\"stacks\":{\"depth\":[0,1,2,2,2],\"frame\":[0,1,2,4,3]},\"series\":["
                     "{\"name\":\"wall\",\"unit\":\"ns\",\"self\":[0,10,20,0,30],"
                     "\"before\":[0,5,0,6,0]},"
                     "{\"name\":\"calls\",\"unit\":\"calls\",\"self\":[0,3,2,0,0],"
                     "\"before\":[0,1,0,4,0]}]}</script>"));
    assert_null(strstr(text, "<!--"));
    profile_free(&before);
}

// Of samples the viewer gets all metrics, but those that are 0 everywhere; of the same stacks, and
// whatever the profile is weighed by.
static void html_of_samples(void **state) {
    (void)state;
    struct told t;
    usual(&t);
    static const enum flame_metric by[] = {FLAME_SAMPLES, FLAME_REDUCTIONS, FLAME_BINARY};
    for (int i = 0; i < 3; i++) {
        struct flame_drawing d = {.weighed = {.metric = by[i]}, .profile = &t.profile};
        assert_true(samples_weigh(&t.profile, &(struct sample_choice){.metric = by[i]}));
        buffer_reset(&out);
        flame_view_json(&d, &out);
        buffer_append(&out, "", 1);
        const char *series = strstr((const char *)out.data, "\"stacks\"");
        assert_non_null(series);
        static const char all[] =
            "\"stacks\":{\"depth\":[0,1,1,2,1],\"frame\":[0,2,1,3,4]},\"series\":["
            "{\"name\":\"samples\",\"unit\":\"samples\",\"self\":[0,2,1,2,1]},"
            "{\"name\":\"active\",\"unit\":\"samples\",\"self\":[0,0,0,2,1]},"
            "{\"name\":\"reductions\",\"unit\":\"reductions\",\"self\":[0,0,0,750,0]},"
            "{\"name\":\"memory\",\"unit\":\"bytes\",\"self\":[0,300,333,2333,0]},"
            "{\"name\":\"memory_growth\",\"unit\":\"bytes\",\"self\":[0,0,0,4000,0]},"
            "{\"name\":\"memory_release\",\"unit\":\"bytes\",\"self\":[0,0,0,3000,0]},"
            "{\"name\":\"queue\",\"unit\":\"messages\",\"self\":[0,0,6,14,0]}";
        static const char asked[] =
            ",{\"name\":\"binary\",\"unit\":\"bytes\",\"self\":[0,0,0,0,0]}";
        char expected[sizeof all + sizeof asked + 3];
        snprintf(expected, sizeof expected, "%s%s]}", all, by[i] == FLAME_BINARY ? asked : "");
        assert_string_equal(series, expected);
    }
    end(&t);
}

// The file of samples has the heat map of each metric of which there is something, and of active
// first; a full trace has none.
static void html_heat(void **state) {
    (void)state;
    struct told t;
    usual(&t);
    struct flame_drawing d = {.weighed = {.metric = FLAME_SAMPLES}, .profile = &t.profile, .id = 7};
    assert_true(samples_weigh(&t.profile, &(struct sample_choice){.metric = FLAME_SAMPLES}));
    assert_true(flame_file(&d, FLAME_HTML, &out));
    buffer_append(&out, "", 1);
    const char *heat = strstr((const char *)out.data, "id=\"heat\">"), *maps;
    assert_non_null(heat);
    assert_true(strncmp(heat, "id=\"heat\">{\"profile\":7,\"length_ms\":3000,\"from_ms\":0,", 47) ==
                0);
    maps = strstr(heat, "\"maps\":[{\"metric\":\"active\",\"unit\":\"samples\",\"adds_up\":true,");
    assert_non_null(maps);
    assert_non_null(strstr(maps, "{\"metric\":\"queue\",\"unit\":\"messages\",\"adds_up\":false,"));
    assert_null(strstr(maps, "{\"metric\":\"binary\""));
    end(&t);
    buffer_reset(&out);
    d.profile = &profile;
    assert_true(flame_file(&d, FLAME_HTML, &out));
    buffer_append(&out, "", 1);
    assert_null(strstr((const char *)out.data, "id=\"heat\""));
}

static void chrome(void **state) {
    (void)state;
#define EVENT(phase, name, tid, ts)                                                                \
    "{\"ph\":\"" phase "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts "}"
    assert_string_equal(
        of_request(FLAME_CHROME),
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":["
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,\"ts\":0,\"args\":{\"name\":"
        "\"<0.77.0>\"}}," EVENT("B", "a", "1", "0") "," EVENT("B", "b", "1", "1") "," EVENT("B", "c", "1", "1") "," EVENT("B", "scheduled out", "1", "2") "," EVENT(
            "E", "scheduled out", "1",
            "3.5") "," EVENT("E", "c", "1",
                             "3.5") "," EVENT("E", "b", "1",
                                              "3.5") "," EVENT("B", "d", "1",
                                                               "3.5") "," EVENT("E", "d", "1",
                                                                                "5") "," EVENT("E",
                                                                                               "a",
                                                                                               "1",
                                                                                               "5") ","
                                                                                                    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"ts\":0,\"args\":{\"name\":"
                                                                                                    "\"<0.78.0>\"}}," EVENT("B", "a", "2", "2.5") "," EVENT(
                                                                                                        "B",
                                                                                                        "x",
                                                                                                        "2",
                                                                                                        "2.5") "," EVENT("E",
                                                                                                                         "x",
                                                                                                                         "2",
                                                                                                                         "3") "," EVENT("E",
                                                                                                                                        "a",
                                                                                                                                        "2",
                                                                                                                                        "3") "]}\n");
#undef EVENT
}

static void speedscope_of_a_request(void **state) {
    (void)state;
    const char *text = of_request(FLAME_SPEEDSCOPE);
    const char *second = strstr(text, "\"name\":\"longest request, 2: <0.78.0>\"");
    assert_non_null(strstr(text, "\"name\":\"longest request, 1: <0.77.0>\""));
    assert_non_null(second);
    assert_non_null(strstr(second, "\"startValue\":0,\"endValue\":5000,\"events\":["
                                   "{\"type\":\"O\",\"frame\":4,\"at\":2500},"
                                   "{\"type\":\"O\",\"frame\":"));
    assert_non_null(strstr(second, ",\"at\":3000},{\"type\":\"C\",\"frame\":4,\"at\":3000}]}"));
}

// What was written, unpacked.
static Pprof__Profile *read_pprof(void) {
    static uint8_t bytes[16 << 20];
    z_stream zip = {.next_in = out.data,
                    .avail_in = (uInt)out.len,
                    .next_out = bytes,
                    .avail_out = sizeof bytes};
    assert_int_equal(inflateInit2(&zip, 15 + 16), Z_OK);
    assert_int_equal(inflate(&zip, Z_FINISH), Z_STREAM_END);
    assert_int_equal(zip.avail_in, 0);
    Pprof__Profile *p = pprof__profile__unpack(NULL, sizeof bytes - zip.avail_out, bytes);
    inflateEnd(&zip);
    assert_non_null(p);
    assert_string_equal(p->string_table[0], "");
    assert_int_equal(p->n_function, p->n_location);
    return p;
}

// A sample as a line: its stack, its values, its labels.
static void put_sample(const Pprof__Profile *p, const Pprof__Sample *s, struct buffer *to) {
    for (size_t i = s->n_location_id; i > 0; i--) {
        const Pprof__Location *place = p->location[s->location_id[i - 1] - 1];
        const Pprof__Function *function = p->function[place->line[0]->function_id - 1];
        assert_int_equal(place->id, s->location_id[i - 1]);
        assert_int_equal(function->id, place->line[0]->function_id);
        buffer_printf(to, "%s%s", p->string_table[function->name], i > 1 ? ";" : "");
    }
    assert_int_equal(s->n_value, p->n_sample_type);
    for (size_t i = 0; i < s->n_value; i++) {
        buffer_printf(to, " %lld", (long long)s->value[i]);
    }
    for (size_t i = 0; i < s->n_label; i++) {
        buffer_printf(to, " %s=%s", p->string_table[s->label[i]->key],
                      p->string_table[s->label[i]->str]);
    }
    buffer_text(to, "\n");
}

static void expect_samples(const char *expected) {
    struct buffer lines = buffer_make(1 << 20);
    Pprof__Profile *p = read_pprof();
    for (size_t i = 0; i < p->n_sample; i++) {
        put_sample(p, p->sample[i], &lines);
    }
    buffer_append(&lines, "", 1);
    assert_string_equal((const char *)lines.data, expected);
    buffer_free(&lines);
    pprof__profile__free_unpacked(p, NULL);
}

// Weights of two identities, one of them in a process that has a name, and of nobody.
static void weights_of_many(void) {
    uint16_t create = (uint16_t)names_intern(&profile.stacks.names, slice_text("create")),
             read = (uint16_t)names_intern(&profile.stacks.names, slice_text("read")),
             writer = (uint16_t)names_intern(&profile.stacks.names, slice_text("writer"));
    static const enum stack_frame_kind kinds[] = {FRAME_WAITING, FRAME_ASLEEP, FRAME_GC};
    static const char *const names[] = {"waiting", "asleep", "collects"};
    uint32_t a = stack_of("a"), ab = stack_of("a;b");
    profile_add(&profile, profile_key(a, create, PROFILE_NOBODY), 2, 10);
    profile_add(&profile, profile_key(ab, create, writer), 3, 20);
    profile_add(&profile, profile_key(ab, read, PROFILE_NOBODY), 1, 30);
    profile_add(&profile, profile_key(STACK_ROOT, PROFILE_NOBODY, PROFILE_NOBODY), 0, 5);
    for (int i = 0; i < 3; i++) {
        uint32_t frame =
            stacks_frame(&profile.stacks, kinds[i], slice_text(names[i]), slice_text(""));
        profile_add(&profile,
                    profile_key(stacks_push(&profile.stacks, a, frame), read, PROFILE_NOBODY), 0,
                    100 + i);
    }
    strcpy(profile.head.node, "shop@host");
    profile.head.begin_ns = 1700000000000000000;
    profile.head.end_ns = 1700000002000000000;
}

static void write_pprof(const struct flame_options *options) {
    static const char *const notes[] = {"20 requests", "some are left out", NULL};
    struct flame_drawing d = {.tree = &tree,
                              .weighed = *options,
                              .title = "create",
                              .notes = notes,
                              .started_ns = profile.head.begin_ns,
                              .profile = &profile};
    assert_true(flame_file(&d, FLAME_PPROF, &out));
}

// All metrics of all stacks, and whose they are.
static void pprof(void **state) {
    (void)state;
    weights_of_many();
    write_pprof(&(struct flame_options){.metric = FLAME_SELF});
    expect_samples("a 2 10 0 0 0 10 node=shop@host identity=create\n"
                   "a;b 3 20 0 0 0 20 node=shop@host identity=create process=writer\n"
                   "a;b 1 30 0 0 0 30 node=shop@host identity=read\n"
                   "all 0 5 0 0 0 5 node=shop@host\n"
                   "a;waiting 0 0 100 0 0 100 node=shop@host identity=read\n"
                   "a;asleep 0 0 0 101 0 101 node=shop@host identity=read\n"
                   "a;collects 0 0 0 0 102 102 node=shop@host identity=read\n");
    Pprof__Profile *p = read_pprof();
    static const char *const types[] = {"calls",   "count",       "self",   "nanoseconds",
                                        "waiting", "nanoseconds", "asleep", "nanoseconds",
                                        "gc",      "nanoseconds", "wall",   "nanoseconds"};
    assert_int_equal(p->n_sample_type, 6);
    for (size_t i = 0; i < p->n_sample_type; i++) {
        assert_string_equal(p->string_table[p->sample_type[i]->type], types[2 * i]);
        assert_string_equal(p->string_table[p->sample_type[i]->unit], types[2 * i + 1]);
    }
    assert_string_equal(p->string_table[p->default_sample_type], "self");
    assert_int_equal(p->n_comment, 3);
    assert_string_equal(p->string_table[p->comment[0]], "create");
    assert_string_equal(p->string_table[p->comment[2]], "some are left out");
    assert_true(p->time_nanos == 1700000000000000000 && p->duration_nanos == 2000000000);
    assert_string_equal(p->string_table[p->function[1]->filename], "shop_http");
    pprof__profile__free_unpacked(p, NULL);
}

static void pprof_of_some(void **state) {
    (void)state;
    weights_of_many();
    write_pprof(&(struct flame_options){.only = "read", .no_asleep = true});
    expect_samples("a;b 1 30 0 0 0 30 node=shop@host identity=read\n"
                   "a;waiting 0 0 100 0 0 100 node=shop@host identity=read\n"
                   "a;collects 0 0 0 0 102 102 node=shop@host identity=read\n");
    out.len = 0;
    write_pprof(&(struct flame_options){.only = "no such identity"});
    expect_samples("");
}

// As many stacks as there may be, as deep and with as long names as they may be: each is there.
static void pprof_of_all(void **state) {
    (void)state;
    char name[LIMIT_NAME_BYTES + 1];
    uint32_t frames[LIMIT_PROFILE_DEPTH + 8];
    for (uint32_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        snprintf(name, sizeof name, "%0*u", (int)LIMIT_NAME_BYTES, i);
        frames[i] =
            stacks_frame(&profile.stacks, FRAME_FUNCTION, slice_text(name), slice_text("m"));
    }
    for (uint32_t i = 0; profile.stacks.stack_count < LIMIT_PROFILE_STACKS; i++) {
        uint32_t at = stacks_push(&profile.stacks, STACK_ROOT,
                                  frames[i / LIMIT_PROFILE_DEPTH % LIMIT_PROFILE_DEPTH]);
        at = stacks_push(&profile.stacks, at, frames[i % LIMIT_PROFILE_DEPTH]);
        for (uint32_t k = 0; k < LIMIT_PROFILE_DEPTH + 6; k++) {
            at = stacks_push(&profile.stacks, at, frames[k]);
        }
        profile_add(&profile, profile_key(at, PROFILE_NOBODY, PROFILE_NOBODY), 1, 7);
    }
    write_pprof(&(struct flame_options){0});
    Pprof__Profile *p = read_pprof();
    assert_int_equal(p->n_sample, profile.weights.count);
    assert_int_equal(p->sample[0]->n_location_id, LIMIT_PROFILE_DEPTH + 1);
    pprof__profile__free_unpacked(p, NULL);
}

static uint32_t occurrences(const char *text, const char *of) {
    uint32_t n = 0;
    for (; (text = strstr(text, of)); text += strlen(of)) {
        n++;
    }
    return n;
}

static void svg(void **state) {
    (void)state;
    a_request();
    add("<b>&", 1, 500000);
    const char *text = file(FLAME_SVG, FLAME_WALL);
    assert_non_null(strstr(text, ">create &amp; &quot;read&quot;</text>"));
    assert_non_null(strstr(text, ">20 requests of &lt;shop@host&gt;</text>"));
    assert_non_null(strstr(text, "<title>&lt;b&gt;&amp;\n500 µs, 3.70 %, 1 call</title>"));
    assert_non_null(strstr(text, "<title>shop:handle/1\n13 ms, 96.30 %, self 2.0 ms, 1 call"));
    assert_int_equal(occurrences(text, "<g><title>"), 9);
    assert_int_equal(occurrences(text, "<g"), occurrences(text, "</g>"));
    assert_null(strstr(text, "nan"));
    assert_string_equal(text + strlen(text) - 17, "]]></script>\n</svg>\n" + 3);
}

// Many narrow frames: some are merged, nothing is lost from sight, and the file stays small.
static void svg_of_many(void **state) {
    (void)state;
    uint64_t random = 9;
    for (int i = 0; i < 50000; i++) {
        char stack[128];
        uint64_t r = random_u64(&random);
        sprintf(stack, "a%d;long_module_name:function_name%d/3;c%d", (int)(r % 30),
                (int)(r >> 8) % 300, (int)(r >> 20) % 40);
        add(stack, 1, 1 + (int64_t)(r >> 40) % 5000);
    }
    const char *text = file(FLAME_SVG, FLAME_WALL);
    assert_true(out.len < 2000000);
    assert_in_range(occurrences(text, "<g><title>"), 1000, 6000);
    assert_true(occurrences(text, "narrow frames\n") > 100);
}

// As many as there is room for are drawn, although all are as wide.
static void svg_of_equals(void **state) {
    (void)state;
    for (int i = 0; i < 9000; i++) {
        char stack[32];
        sprintf(stack, "a;f%d", i);
        add(stack, 1, 1000);
    }
    const char *text = file(FLAME_SVG, FLAME_WALL);
    assert_int_equal(occurrences(text, "<g><title>"), 6000);
    assert_non_null(strstr(text, "<title>3002 narrow frames\n33.36 %</title>"));
}

// More than 100,000 stacks of two profiles, whose names are as long as they may be and take five
// times as much in XML.
static void svg_at_its_largest(void **state) {
    (void)state;
    struct profile after = profile, before;
    uint64_t random = 9;
    assert_true(profile_init(&before));
    for (int side = 0; side < 2; side++) {
        profile = side == 0 ? after : before;
        for (uint32_t i = 0; profile.stacks.stack_count < LIMIT_PROFILE_STACKS; i++) {
            char name[LIMIT_NAME_BYTES + 1];
            uint32_t at = STACK_ROOT;
            for (uint32_t depth = 0; depth < 50; depth++) {
                memset(name, '&', sizeof name);
                sprintf(name + 100, "%u", (37 * i + depth) % 4000 + (depth > 10 ? 4000 * side : 0));
                at = stacks_push(&profile.stacks, at,
                                 stacks_frame(&profile.stacks, FRAME_FUNCTION, slice_text(name),
                                              slice_text("m")));
            }
            profile_add(&profile, profile_key(at, PROFILE_NOBODY, PROFILE_NOBODY), 1,
                        (int64_t)(random_u64(&random) % 1000000));
        }
        side == 0 ? (after = profile) : (before = profile);
    }
    profile = after;
    struct flame_options options = {.metric = FLAME_WALL};
    assert_true(flame_tree_add(&tree, &before, &options, FLAME_BEFORE));
    struct flame_drawing d = {.tree = &tree, .title = "", .compared = true};
    assert_true(flame_tree_add(&tree, &profile, &options, FLAME_AFTER));
    assert_true(flame_tree_finish(&tree));
    assert_true(tree.node_count > 100000);
    assert_true(flame_file(&d, FLAME_SVG, &out));
    buffer_append(&out, "", 1);
    const char *text = (const char *)out.data;
    print_message("%zu bytes, %u frames\n", out.len, occurrences(text, "<g><title>"));
    assert_in_range(out.len, 1400000, 2000000);
    assert_true(occurrences(text, "<g><title>") > 2000);
    assert_true(occurrences(text, "narrow frames\n") > 0);
    assert_int_equal(occurrences(text, "<svg"), 1);
    profile_free(&before);
}

static void nothing(void **state) {
    (void)state;
    for (enum flame_format format = 0; format < FLAME_FORMATS; format++) {
        const char *text = file(format, FLAME_WALL), *script = strstr(text, "<script>");
        size_t len = script ? (size_t)(script - text) : strlen(text);
        assert_null(memmem(text, len, ":nan", 4));
        assert_null(memmem(text, len, ":inf", 4));
        forget(NULL);
        prepare(NULL);
    }
}

static void formats(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum flame_format format;
    } all[] = {{"a.html", FLAME_HTML},
               {"a.svg", FLAME_SVG},
               {"svg", FLAME_SVG},
               {"x/y.perf.txt", FLAME_PERF},
               {"perf.txt", FLAME_PERF},
               {"a.b.collapsed", FLAME_COLLAPSED},
               {".speedscope.json", FLAME_SPEEDSCOPE},
               {"x.pprof", FLAME_PPROF},
               {"callgrind", FLAME_CALLGRIND}};
    enum flame_format format;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(flame_format_of(all[i].name, &format));
        assert_int_equal(format, all[i].format);
    }
    static const char *const none[] = {"", "a", "a.txt", "svgz", "a.json", "xsvg", "a.svg "};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(flame_format_of(none[i], &format));
    }
}

static void no_memory_or_room(void **state) {
    (void)state;
    a_request();
    file(FLAME_SVG, FLAME_WALL);
    struct flame_drawing d = {.tree = &tree, .title = ""};
    for (enum flame_format format = 0; format < FLAME_FORMATS; format++) {
        struct buffer small = buffer_make(10);
        assert_false(flame_file(&d, format, &small));
        buffer_free(&small);
        fail_alloc_at(0);
        struct buffer none = buffer_make(1 << 20);
        assert_false(flame_file(&d, format, &none));
        fail_alloc_at(-1);
        buffer_free(&none);
    }
}

#define A_FILE(test) cmocka_unit_test_setup_teardown(test, prepare, forget)

int main(void) {
    const struct CMUnitTest tests[] = {
        A_FILE(collapsed),
        A_FILE(collapsed_calls),
        A_FILE(perf),
        A_FILE(perf_samples),
        A_FILE(callgrind),
        A_FILE(speedscope),
        A_FILE(svg),
        A_FILE(svg_of_many),
        A_FILE(svg_of_equals),
        A_FILE(svg_at_its_largest),
        A_FILE(nothing),
        A_FILE(html),
        A_FILE(html_of_samples),
        A_FILE(html_heat),
        A_FILE(chrome),
        A_FILE(speedscope_of_a_request),
        A_FILE(pprof),
        A_FILE(pprof_of_some),
        A_FILE(pprof_of_all),
        A_FILE(formats),
        A_FILE(no_memory_or_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
