// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of the fuzz targets: fuzz_seeds <data folder> <folder of the corpora, which
// holds a folder per target>.
#include <stdio.h>
#include <stdlib.h>

#include "codec/control.h"
#include "codec/frame.h"
#include "codec/sample_records.h"
#include "codec/term.h"
#include "model/stats/histogram.h"
#include "net/auth.h"

#include "../unit/native_bytes.h"

static const char *to;

static void seed(const char *target, const char *name, int number, struct slice bytes) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s/%s.%d", to, target, name, number);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes.data, 1, bytes.len, f) != bytes.len || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

// What a capture's terms say, in blocks; as bodies of their frames, and the first ones as a stream.
static void block(const char *name, struct slice stream) {
    enum { MESSAGES = 12, SEEDS = 10, LARGEST = 2048 };
    struct buffer blocks = buffer_make(1 << 20);
    if (native_of_terms(stream, MESSAGES, &blocks) == 0) {
        return; // it has no times that blocks have
    }
    seed("frame", name, 1, slice_of(blocks.data, blocks.len < LARGEST ? blocks.len : LARGEST));
    struct frame frame;
    size_t at = 0;
    long n;
    for (int i = 0;
         i < SEEDS && (n = frame_next(slice_of(blocks.data + at, blocks.len - at), &frame)) > 0;
         at += (size_t)n) {
        if (frame.kind == FRAME_BLOCK) {
            seed("native", name, i++, frame.body);
        }
    }
    buffer_free(&blocks);
}

// One of each kind of record, and of each flag.
static void whole_block(void) {
    static const uint8_t bytes[] =
        "\1\0w\3n@h\0\0\0\0\0\0\0\0" // head, a function, processes of both kinds
        "\0\2w\1mw\1f\1\5\2w\3m@h\6"
        "\x13\2\0\0\x10\3\2\1"                              // calls: with a token,
        "\xb3\2\0\0\2w\0\3\1\1\1"                           // a label that is a term, and a caller,
        "\x73\2\0\0\1\3\0\1\0\3\1w\1x"                      // a caller, and a rest
        "\4\2\0\0\x14\2\0\0\1\5\2\0\0\6\2\0\0\6\2\0\1"      // what ends a call
        "\7\2\0\x8\2\0\x9\2\0\xa\2\0\xb\2\0\xe\2\7\x12\xf"; // states, and a loss
    seed("native", "whole", 0, slice_of(bytes, sizeof bytes - 1));
}

static void capture(const char *data, const char *name) {
    enum { LARGEST = 2048, FRAMES = 110 };
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.cap", data, name);
    static uint8_t bytes[1 << 18];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    size_t len = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    seed("frame", name, 0, slice_of(bytes, len < LARGEST ? len : LARGEST));
    seed("message", name, FRAMES,
         slice_of(bytes, len < LARGEST ? len : LARGEST)); // some that follow one another
    block(name, slice_of(bytes, len));
    struct frame frame;
    size_t at = 0;
    long n;
    for (int i = 0; i < FRAMES && (n = frame_next(slice_of(bytes + at, len - at), &frame)) > 0;
         i++, at += (size_t)n) {
        if (frame.kind != FRAME_TERM || frame.body.len > LARGEST) {
            continue;
        }
        seed("message", name, i, slice_of(bytes + at, (size_t)n));
        // the term and its elements, each without the leading version
        struct cursor c = cursor_of(frame.body.data + 1, frame.body.len - 1);
        seed("term", name, i * 10, term_take(&c));
        c = cursor_of(frame.body.data + 1, frame.body.len - 1);
        uint32_t arity = term_tuple(&c);
        for (uint32_t k = 0; k < arity && k < 9; k++) {
            seed("term", name, i * 10 + 1 + (int)k, term_take(&c));
        }
    }
}

// A whole handshake, as what each side gets.
static void handshake(void) {
    static const uint8_t nonce[AUTH_NONCE_BYTES] = "a nonce";
    struct slice key = slice_text("a secret that is known");
    struct auth client = {0}, collector = {0};
    struct buffer said = buffer_make(4096), got = buffer_make(4096);
    auth_begin(&client, "data", 7, nonce, &said);
    auth_challenge(&collector, slice_of(said.data, said.len), nonce, &got);
    size_t begun = said.len, challenged = got.len;
    auth_answer(&client, key, slice_of(got.data, got.len), &said);
    auth_check(&collector, key, slice_of(said.data + begun, said.len - begun), &got);
    auth_confirm(&client, key, slice_of(got.data + challenged, got.len - challenged));
    seed("auth", "client", 0, slice_of(said.data, said.len));
    seed("auth", "collector", 0, slice_of(got.data, got.len));
    buffer_free(&said);
    buffer_free(&got);
}

// What two nodes do, step by step: the numbers are those of the targets' own steps. A request: its
// begin, a call and the return, its end, each with a time some milliseconds from now; and a call
// four seconds later, by which it is over.
#define REQUEST 24, 0, 3, 100, 64, 24, 0, 0, 100, 66, 3, 0, 0, 100, 68, 0, 0, 5, 100, 70
#define LATER 24, 0, 0, 210, 104

static void whole_collector(void) {
    // node a
    static const uint8_t pipeline[] = {0, 0, 0, 0, 1, 2, 0x71, 0, 1, 3, 7, 0, 2, 0, 39, REQUEST, 0,
                                       3, LATER, 0, 8,
                                       // node b
                                       3, 0, 0, 3, 1, 2, 3, 3, 2, 3, 39, REQUEST, 3, 3, LATER,
                                       // the same in blocks
                                       3, 47, REQUEST, 0,
                                       // a total
                                       3, 1, 5, 7, 20, 10, 0, 3, 5,
                                       // a clock
                                       0, 1, 0, 100, 64, 20, 9, 20, 9, 20, 9, 20, 9, 20, 0, 7,
                                       // a gap, a loss
                                       0, 1, 6, 100, 60, 100, 70, 0, 4, 0, 9, 40, 0, 15, 252, 9, 0,
                                       0, 0, 4, 6, 1, 2, 3, 4, 5, 6, 0, 6};
    // node a, its data
    static const uint8_t session[] = {
        0, 0, 0, 1, 0, 0, 5, 0, 2, 0x71, 0, 1, 3, 1, 0, 43, 1, REQUEST, 7, 1, LATER,
        // a tool
        0, 2, 2, 2, 0, 6, 2, 0, 1, 1, 6, 2, 1, 1, 1, 6, 2, 2, 1, 1, 10, 0, 20, 11, 2, 8, 3, 5, 1, 2,
        3, 4, 5, 10, 0, 255, 9, 1, 10, 0, 254, 9, 0};
    // node a
    static const uint8_t proving[] = {1, 0, 0, 4, 0, 0, 4, 0, 0, 1, 0, 0, 5, 0, 2, 3,
                                      // its data
                                      0, 1, 4, 1, 6, 4, 1, 6, 3, 1, 0, 43, 1, REQUEST, 7, 1, LATER,
                                      // a wrong secret, and a tool
                                      0, 2, 4, 2, 250, 4, 2, 250, 1, 2, 0, 0, 3, 4, 3, 1, 4, 3, 1,
                                      2, 3, 0};
    seed("pipeline", "nodes", 0, slice_of(pipeline, sizeof pipeline));
    seed("session", "open", 0, slice_of(session, sizeof session));
    seed("session", "secret", 0, slice_of(proving, sizeof proving));
}

// A run of stack sampling: two processes, looks at them in two seconds, one without an answer.
static void samples(void) {
    struct buffer b = buffer_make(4096);
    const struct sample_record told[] = {
        {.kind = SAMPLE_FRAME, .texts = {slice_text("m"), slice_text("f")}, .number = 1},
        {.kind = SAMPLE_FRAME, .texts = {slice_text("m"), slice_text("g")}},
        {.kind = SAMPLE_STACK, .frame_count = 2, .frames = {0, 1}},
        {.kind = SAMPLE_STACK, .flags = SAMPLE_STACK_CUT, .frame_count = 1, .frames = {1}},
        {.kind = SAMPLE_PROCESS,
         .texts = {slice_text("<0.9.0>"), slice_text("a"), slice_text("m:f/1"), slice_text("x")}},
        {.kind = SAMPLE_PROCESS, .texts = {slice_text("<0.10.0>")}},
        {.kind = SAMPLE_LOOK, .stack = 1, .mask = MASK_ALL, .values = {0, 2, 900, 80, 7000}},
        {.kind = SAMPLE_LOOK, .process = 1, .status = STATUS_WAITING, .stack = 2},
        {.kind = SAMPLE_TIME, .number = 1200000},
        {.kind = SAMPLE_LOOK, .mask = MASK_ALL, .values = {50, 9, 800, 90, 5000, 1, 40, 30, 20}},
        {.kind = SAMPLE_UNCHANGED, .process = 1, .status = STATUS_WAITING},
        {.kind = SAMPLE_HELD, .number = 1000},
        {.kind = SAMPLE_LATE, .number = 30000},
        {.kind = SAMPLE_UNANSWERED, .process = 1},
        {.kind = SAMPLE_IDENTITY, .texts = {slice_text("read")}},
        {.kind = SAMPLE_LABEL, .number = UINT64_C(1) << 57 | 1},
        {.kind = SAMPLE_GONE, .process = 1},
        {.kind = SAMPLE_FORGET}};
    buffer_append(&b, "\xff\x41", 2); // one batch; a stretch
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        sample_record_write(&b, &told[i]);
    }
    seed("samples", "run", 0, slice_of(b.data, b.len));
    buffer_free(&b);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    to = argv[2];
    static const char *const captures[] = {"otp25-basic", "otp25-entry", "otp25-kinds",
                                           "otp25-meta",  "otp25-rto",   "otp25-ts",
                                           "otp25-zoo",   "otp27-calls"};
    for (size_t i = 0; i < sizeof captures / sizeof *captures; i++) {
        capture(argv[1], captures[i]);
    }
    struct buffer b = buffer_make(4096);
    struct control_writer w = control_begin(&b, "tiers", 4);
    control_text(&w, "role", slice_text("control"));
    control_bytes(&w, "key", slice_text("0123456789abcdef"));
    control_int(&w, "at", -123456789012);
    control_list(&w, "tiers", 2);
    for (int i = 0; i < 2; i++) {
        control_map(&w, 3);
        control_text(&w, "x", slice_text("tier"));
        control_bool(&w, "b", true);
        control_number(&w, "n", 0.5);
    }
    control_end(&w);
    seed("control", "tiers", 0, slice_of(b.data, b.len));
    seed("control", "hostile", 0, slice_of("\xdd\x3d\x0a\xdd\x3d\x0a", 6));
    buffer_reset(&b);
    struct histogram h = {0};
    for (uint64_t v = 1; v < 1ULL << 50; v = v * 3 + 1) {
        histogram_add(&h, v);
    }
    histogram_write(&h, &b);
    seed("histogram", "wide", 0, slice_of(b.data, b.len));
    histogram_free(&h);
    buffer_free(&b);
    static const char question[] =
        "/api/v1/slow/12?from=1763640000&until=1763643600&node=shop%40host&identity=GET%20%2Fx"
        "&most=10&failed=1";
    seed("params", "whole", 0, slice_of(question, sizeof question - 1));
    static const char accept[] =
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
        "encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1";
    seed("params", "accept", 0, slice_of(accept, sizeof accept - 1));
    static const char order[] = "/api/v1/nodes/shop%40host/sample\n{\"per_second\":70}";
    static const char note[] =
        "/api/v1/notes\n{\"text\":\"deployed \\u0031.4\",\"at_s\":1763640000}";
    static const char flame[] =
        "/api/v1/flame\n{\"node\":\"a@b\",\"requests\":20,\"seconds\":60,\"identity\":\"x\"}";
    seed("orders", "sample", 0, slice_of(order, sizeof order - 1));
    seed("orders", "note", 0, slice_of(note, sizeof note - 1));
    seed("orders", "flame", 0, slice_of(flame, sizeof flame - 1));
    static const char refusal[] =
        "Code: 33, e.displayText() = DB::Exception: Cannot read all data, e.what() = DB::Exception";
    static const char pairs[] = "tier_stats\t10-20250101\nledger\t3600-202501\n";
    seed("answer", "refusal", 0, slice_of(refusal, sizeof refusal - 1));
    seed("answer", "pairs", 0, slice_of(pairs, sizeof pairs - 1));
    seed("answer", "version", 0, slice_text("18.16.1\n"));
    samples();
    handshake();
    whole_block();
    whole_collector();
    return 0;
}
