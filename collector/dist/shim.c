// SPDX-License-Identifier: Apache-2.0
#include "dist/shim.h"

#include <string.h>

#include "codec/protocol.h"
#include "codec/term.h"
#include "shim_bytes.h"

enum { ENTER_MS = 60000, START_MS = 40000, WORD_MS = 5000, LEAVE_MS = 30000, SUGGEST_MS = 20000 };

// -- terms: each adds one and returns whether there was memory ------------------------------------

static bool put_atom(ei_x_buff *x, const char *text) {
    return ei_x_encode_atom_len_as(x, text, (int)strlen(text), ERLANG_UTF8, ERLANG_UTF8) == 0;
}

static bool put_binary(ei_x_buff *x, struct slice s) {
    return ei_x_encode_binary(x, s.data, (int)s.len) == 0;
}

static bool put_term(ei_x_buff *x, struct slice term) {
    return ei_x_append_buf(x, (const char *)term.data, (int)term.len) == 0;
}

static bool put_tuple(ei_x_buff *x, int arity) {
    return ei_x_encode_tuple_header(x, arity) == 0;
}

static bool put_list(ei_x_buff *x, int count) {
    return ei_x_encode_list_header(x, count) == 0;
}

static bool put_nil(ei_x_buff *x) {
    return ei_x_encode_empty_list(x) == 0;
}

static bool put_number(ei_x_buff *x, uint32_t n) {
    return ei_x_encode_ulong(x, n) == 0;
}

static bool put_mfa(ei_x_buff *x, const struct mfa *mfa) {
    return put_tuple(x, 3) && put_atom(x, mfa->module) && put_atom(x, mfa->function) &&
           put_number(x, mfa->arity);
}

// {Key, …: the value follows
static bool put_key(ei_x_buff *x, const char *key) {
    return put_list(x, 1) && put_tuple(x, 2) && put_atom(x, key);
}

// #{returns => none}
static bool put_blind(ei_x_buff *x) {
    return ei_x_encode_map_header(x, 1) == 0 && put_atom(x, "returns") && put_atom(x, "none");
}

static bool put_tiers(ei_x_buff *x, const struct shim_options *o) {
    bool good = o->tier_count == 0 || put_list(x, (int)o->tier_count);
    for (uint32_t i = 0; good && i < o->tier_count; i++) {
        const struct shim_tier *tier = &o->tiers[i];
        good = put_tuple(x, tier->blind ? 3 : 2) && put_binary(x, tier->name) &&
               put_mfa(x, &tier->mfa) && (!tier->blind || put_blind(x));
    }
    return good && put_nil(x);
}

static bool put_entries(ei_x_buff *x, const struct shim_options *o) {
    bool good = put_list(x, (int)o->entry_count);
    for (uint32_t i = 0; good && i < o->entry_count; i++) {
        const struct shim_entry *entry = &o->entries[i];
        good = (!entry->blind || put_tuple(x, 2)) && put_mfa(x, &entry->mfa) &&
               (!entry->blind || put_blind(x));
    }
    return good && put_nil(x);
}

static bool put_presets(ei_x_buff *x, const char *const *presets, uint32_t count) {
    bool good = put_list(x, (int)count);
    for (uint32_t i = 0; good && i < count; i++) {
        good = put_binary(x, slice_text(presets[i]));
    }
    return good && put_nil(x);
}

static bool put_identity(ei_x_buff *x, const struct shim_options *o) {
    return o->identity
               ? put_tuple(x, 2) && put_mfa(x, o->identity) && put_number(x, o->identity_argument)
               : put_binary(x, slice_text(o->identity_fun));
}

// A map of what is given
static bool put_tls(ei_x_buff *x, const struct shim_options *o) {
    const struct {
        const char *key;
        struct slice value;
    } pairs[] = {{"cacerts", o->tls_ca},
                 {"cert", o->tls_cert},
                 {"key", o->tls_key},
                 {"server_name", o->tls_name ? slice_text(o->tls_name) : slice_of(NULL, 0)}};
    enum { PAIRS = sizeof pairs / sizeof *pairs };
    int given = 0;
    for (int i = 0; i < PAIRS; i++) {
        given += pairs[i].value.len > 0;
    }
    bool good = ei_x_encode_map_header(x, given) == 0;
    for (int i = 0; i < PAIRS; i++) {
        good = good && (pairs[i].value.len == 0 ||
                        (put_atom(x, pairs[i].key) && put_binary(x, pairs[i].value)));
    }
    return good;
}

// [Config, [{Key, Value}]]; the list's cells are written one by one, as their number is not known
// before.
static bool put_options(ei_x_buff *x, const struct shim_options *o) {
    bool good = put_list(x, 2) && put_binary(x, o->config);
    if (o->host) {
        good = good && put_key(x, "collector") && put_tuple(x, 2) &&
               put_binary(x, slice_text(o->host)) && put_number(x, o->port);
    }
    if (o->secret.len > 0) {
        good = good && put_key(x, "secret") && put_binary(x, o->secret);
    }
    if (o->tls) {
        good = good && put_key(x, "tls") && put_tls(x, o);
    }
    if (o->tier_count > 0 || o->config.len == 0) {
        good = good && put_key(x, "tier_config") && put_tiers(x, o);
    }
    if (o->entry_count > 0) {
        good = good && put_key(x, "entry") && put_entries(x, o);
    }
    if (o->preset_count > 0) {
        good = good && put_key(x, "preset") && put_presets(x, o->presets, o->preset_count);
    }
    if (o->identity || o->identity_fun) {
        good = good && put_key(x, "identity") && put_identity(x, o);
    }
    if (o->wait) {
        good = good && put_key(x, "wait") && put_atom(x, "true");
    }
    if (o->tracer) {
        good = good && put_key(x, "tracer") && put_atom(x, o->tracer);
    }
    if (o->one_in > 0 || o->per_second > 0) {
        good = good && put_key(x, "sample") && put_tuple(x, 2) &&
               put_atom(x, o->one_in > 0 ? "one_in" : "per_second") &&
               put_number(x, o->one_in > 0 ? o->one_in : o->per_second);
    }
    return good && put_nil(x) && put_nil(x);
}

// [Expression, Bindings, none, none, value], the bindings in the order of their names
static bool put_enter(ei_x_buff *x, const char *me) {
    return put_list(x, 5) && put_term(x, shim_enter_expr) && put_list(x, 3) && put_tuple(x, 2) &&
           put_atom(x, "App") && put_term(x, shim_app) && put_tuple(x, 2) && put_atom(x, "Me") &&
           put_atom(x, me) && put_tuple(x, 2) && put_atom(x, "Modules") &&
           put_term(x, shim_modules) && put_nil(x) && put_atom(x, "none") && put_atom(x, "none") &&
           put_atom(x, "value") && put_nil(x);
}

static bool put_leave(ei_x_buff *x, const char *who) {
    return put_list(x, 5) && put_term(x, shim_leave_expr) && put_list(x, 1) && put_tuple(x, 2) &&
           put_atom(x, "Who") && put_atom(x, who) && put_nil(x) && put_atom(x, "none") &&
           put_atom(x, "none") && put_atom(x, "value") && put_nil(x);
}

// -- answers --------------------------------------------------------------------------------------

static void take_text(struct cursor *c, char *out, size_t room) {
    out[term_text(term_take(c), out, room - 1)] = 0;
}

static struct slice take_binary(struct cursor *c) {
    enum { HEAD = 5 }; // tag and length
    if (term_peek(c) != TERM_BINARY) {
        cursor_fail(c);
        return slice_of(NULL, 0);
    }
    struct slice term = term_take(c);
    return c->failed ? slice_of(NULL, 0) : slice_of(term.data + HEAD, term.len - HEAD);
}

static enum dist_status status_of(struct slice name) {
    static const struct {
        const char *name;
        enum dist_status status;
    } known[] = {
        {"config", DIST_CONFIG}, {"load", DIST_LOAD}, {"trace", DIST_TRACE}, {"busy", DIST_BUSY}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (slice_is(name, known[i].name)) {
            return known[i].status;
        }
    }
    return DIST_OTHER;
}

static void take_warnings(struct cursor *c, char out[SHIM_LINES_BYTES]) {
    bool has_tail;
    struct slice bytes;
    size_t len = 0;
    uint32_t n = term_list(c, &has_tail, &bytes);
    for (uint32_t i = 0; has_tail && i < n && len + 2 < SHIM_LINES_BYTES; i++) {
        len += term_text(term_take(c), out + len, SHIM_LINES_BYTES - 2 - len);
        out[len++] = '\n';
    }
    out[len] = 0;
}

// {ok, Line, Warnings} | {error, Status, Line}
static bool take_answer(const struct dist_node *n, struct slice answer, struct shim_told *told,
                        struct dist_error *e) {
    struct cursor c = cursor_of(answer.data, answer.len);
    if (!term_is_tuple(term_peek(&c)) || term_tuple(&c) != 3 || !term_is_atom(term_peek(&c))) {
        return dist_fail(e, DIST_OTHER,
                         "%s has another version of kprof, whose answer is not understood",
                         n->name.full);
    }
    if (slice_is(term_atom(&c).text, "ok")) {
        take_text(&c, told->line, sizeof told->line);
        take_warnings(&c, told->warnings);
        return true;
    }
    enum dist_status status =
        term_is_atom(term_peek(&c)) ? status_of(term_atom(&c).text) : DIST_OTHER;
    char line[900];
    take_text(&c, line, sizeof line);
    return dist_fail(e, status, "%s: %s", n->name.full, line);
}

// Ends a list of arguments that was put together: calls, unless memory was out, and frees it.
static bool call(struct dist_node *n, const char *module, const char *function,
                 ei_x_buff *arguments, bool good, int timeout_ms, struct slice *answer,
                 struct dist_error *e) {
    good = good ? channel_call(&n->channel, module, function, arguments, timeout_ms, answer, e)
                : dist_fail(e, DIST_OTHER, "no memory");
    explicit_bzero(arguments->buff, (size_t)arguments->index); // it may hold the secret
    ei_x_free(arguments);
    return good;
}

// -- the functions --------------------------------------------------------------------------------

bool shim_enter(struct dist_node *n, struct shim_told *told, struct dist_error *e) {
    ei_x_buff x;
    struct slice answer;
    bool good = ei_x_new(&x) == 0 && put_enter(&x, n->self);
    return call(n, "erl_eval", "expr", &x, good, ENTER_MS, &answer, e) &&
           take_answer(n, answer, told, e);
}

bool shim_start(struct dist_node *n, const struct shim_options *o, struct shim_told *told,
                struct dist_error *e) {
    ei_x_buff x;
    struct slice answer;
    bool good = ei_x_new(&x) == 0 && put_options(&x, o);
    return call(n, "kprof_attach", "start", &x, good, START_MS, &answer, e) &&
           take_answer(n, answer, told, e);
}

bool shim_names_collector(struct dist_node *n, struct slice config) {
    ei_x_buff x;
    struct slice answer;
    struct dist_error ignored;
    bool good = ei_x_new(&x) == 0 && put_list(&x, 1) && put_binary(&x, config) && put_nil(&x);
    if (!call(n, "kprof_attach", "names_collector", &x, good, START_MS, &answer, &ignored)) {
        return true; // a node's own kprof may be older
    }
    struct cursor c = cursor_of(answer.data, answer.len);
    return !term_is_atom(term_peek(&c)) || !slice_is(term_atom(&c).text, "false");
}

bool shim_collector(struct dist_node *n, struct shim_collector *out) {
    ei_x_buff x;
    struct slice answer;
    struct dist_error ignored;
    bool good = ei_x_new(&x) == 0 && put_nil(&x);
    *out = (struct shim_collector){0};
    if (!call(n, "kprof_life", "collector", &x, good, WORD_MS, &answer, &ignored)) {
        return false; // a node's own kprof may be older
    }
    struct cursor c = cursor_of(answer.data, answer.len);
    if (!term_is_tuple(term_peek(&c)) || term_tuple(&c) != 4 || term_peek(&c) != TERM_BINARY) {
        return false;
    }
    take_text(&c, out->host, SHIM_HOST_BYTES);
    int64_t port = term_is_integer(term_peek(&c)) ? term_integer(&c) : 0;
    out->port = (uint16_t)port;
    out->secret = take_binary(&c);
    if (term_is_tuple(term_peek(&c)) && term_tuple(&c) == 4) { // or false
        out->tls = true;
        out->tls_ca = take_binary(&c);
        out->tls_cert = take_binary(&c);
        out->tls_key = take_binary(&c);
        take_text(&c, out->tls_name, SHIM_HOST_BYTES);
    }
    return !c.failed && port > 0 && port <= UINT16_MAX && out->host[0] != 0;
}

void shim_collector_wipe(struct dist_node *n, struct shim_collector *c) {
    if (n->channel.used > 0) {
        explicit_bzero(n->channel.in.data, n->channel.used); // the slices lie there
    }
    c->secret = c->tls_ca = c->tls_cert = c->tls_key = slice_of(NULL, 0);
}

bool shim_word(struct dist_node *n, enum shim_state *state, struct dist_error *e) {
    static const char *const names[] = {[SHIM_TRACING] = STATE_TRACING,
                                        [SHIM_WAITING] = STATE_WAITING,
                                        [SHIM_TRIPPED] = STATE_TRIPPED,
                                        [SHIM_PAUSED] = STATE_PAUSED,
                                        [SHIM_IDLE] = STATE_IDLE};
    ei_x_buff x;
    struct slice answer;
    bool good = ei_x_new(&x) == 0 && put_list(&x, 1) && put_atom(&x, n->self) && put_nil(&x);
    *state = SHIM_GONE;
    if (!call(n, "kprof_guard", "word", &x, good, WORD_MS, &answer, e)) {
        return e->status != DIST_DOWN; // connected, but there is no such function
    }
    struct cursor c = cursor_of(answer.data, answer.len);
    struct slice name = term_is_atom(term_peek(&c)) ? term_atom(&c).text : slice_of(NULL, 0);
    for (int i = 0; i <= SHIM_IDLE; i++) {
        *state = slice_is(name, names[i]) ? (enum shim_state)i : *state;
    }
    return true;
}

bool shim_leave(struct dist_node *n, bool ours, struct shim_told *told, struct dist_error *e) {
    ei_x_buff x;
    struct slice answer;
    bool good = ei_x_new(&x) == 0 && put_leave(&x, ours ? n->self : "any");
    return call(n, "erl_eval", "expr", &x, good, LEAVE_MS, &answer, e) &&
           take_answer(n, answer, told, e);
}

// -- what to trace --------------------------------------------------------------------------------

// A proper list begins: how many elements follow, and then an end.
static uint32_t take_list(struct cursor *c) {
    bool has_tail = false;
    struct slice bytes;
    uint32_t n = term_peek(c) == TERM_LIST ? term_list(c, &has_tail, &bytes) : 0;
    if (n == 0 && !c->failed) {
        term_skip(c); // the empty list
    }
    return has_tail ? n : 0;
}

// {suggested, [{Option, Value, Reason}], Config, [Note]}, behind its first element
static bool take_suggestions(struct cursor *c, struct shim_suggestions *out) {
    uint32_t n = take_list(c);
    for (uint32_t i = 0; i < n && !c->failed; i++) {
        if (i >= SHIM_SUGGESTED || !term_is_tuple(term_peek(c)) || term_tuple(c) != 3) {
            return false;
        }
        struct slice option = take_binary(c), value = take_binary(c), reason = take_binary(c);
        out->of[out->count++] = (struct shim_suggested){option, value, reason};
    }
    if (n > 0) {
        term_skip(c);
    }
    out->config = take_binary(c);
    n = take_list(c);
    for (uint32_t i = 0; i < n && i < SHIM_NOTES && !c->failed; i++) {
        out->notes[out->note_count++] = take_binary(c);
    }
    return !c->failed;
}

bool shim_suggest(struct dist_node *n, uint32_t for_ms, const char *const *presets,
                  uint32_t preset_count, struct shim_suggestions *out, struct dist_error *e) {
    ei_x_buff x;
    struct slice answer;
    struct shim_told ignored;
    bool good =
        ei_x_new(&x) == 0 && put_list(&x, 1) &&
        (preset_count > 0 ? put_presets(&x, presets, preset_count) : put_number(&x, for_ms)) &&
        put_nil(&x);
    *out = (struct shim_suggestions){.bytes = buffer_make(CHANNEL_BYTES)};
    if (!call(n, "kprof_suggest", preset_count > 0 ? "presets" : "look", &x, good, SUGGEST_MS,
              &answer, e)) {
        return false;
    }
    if (!buffer_append(&out->bytes, answer.data, answer.len)) {
        return dist_fail(e, DIST_OTHER, "no memory");
    }
    struct cursor c = cursor_of(out->bytes.data, out->bytes.len);
    if (!term_is_tuple(term_peek(&c)) || term_tuple(&c) != 4) {
        // an error, or nothing that is known
        return take_answer(n, answer, &ignored, e) &&
               dist_fail(e, DIST_OTHER, "%s has another version of kprof", n->name.full);
    }
    term_skip(&c);
    return take_suggestions(&c, out) ||
           dist_fail(e, DIST_OTHER, "%s: its answer is not understood", n->name.full);
}

void shim_suggestions_free(struct shim_suggestions *s) {
    buffer_free(&s->bytes);
}
