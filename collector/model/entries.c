// Requests that begin with a call of an entry function and end with its return.
//
// Each such call gets a token of its own from its match spec. No match spec runs when it returns: the process keeps the token, and so does
// whoever it sends messages to. What tells whether a process is inside of its request is its stack of open calls, which is exact. Tokens
// are counted in the node without a lock, so that two calls may get the same one when the kernel takes the processor away in between.
#include "tracker.h"

// A token stands for a request besides its own.
static void add_token(struct tracker *t, uint32_t index, uint64_t token) {
    struct request *r = request_at(t, index);
    struct live_span record = {.start = (int64_t)token, .parent = SPAN_NONE, .tier = RECORD_TOKEN};
    if (request_find(t, token) == index) {
        return;
    }
    if (request_find(t, token) != MAP_NONE || r->tokens == LIMIT_SPANS_PER_REQUEST || !record_add(t, index, &record)) {
        r->damaged = true; // what comes under it is not found, or is another's already
        return;
    }
    r->tokens++;
    if (!map_set(&t->by_token, token, index)) {
        r->damaged = true;
    }
    t->tokens[token % LATEST] = (struct latest){token, index};
}

struct token_owner {
    struct tracker *tracker;
    uint32_t index;
};

static void free_token(void *context, uint32_t i, const struct live_span *record) {
    (void)i;
    const struct token_owner *owner = context;
    uint64_t token = (uint64_t)record->start;
    if (record->tier == RECORD_TOKEN && map_remove(&owner->tracker->by_token, token, owner->index)) {
        remember_closed(owner->tracker, token);
        owner->tracker->tokens[token % LATEST].value = SLAB_NONE;
    }
}

void entry_tokens_free(struct tracker *t, uint32_t index) {
    struct token_owner owner = {t, index};
    each_record(t, request_at(t, index), &owner, free_token);
}

struct entry_of {
    uint32_t root;
    uint16_t tier;
};

static void find_tier(void *context, uint32_t i, const struct live_span *record) {
    struct entry_of *entry = context;
    entry->tier = i == entry->root ? record->tier : entry->tier;
}

void entry_expired(struct tracker *t, uint32_t index) {
    const struct request *r = request_at(t, index);
    struct entry_of entry = {r->root, TIER_NONE};
    each_record(t, r, &entry, find_tier);
    if (r->tokens >= LIMIT_LOOP_ENTRIES && entry.tier <= LIMIT_TIER_NAMES && !t->told[entry.tier]) {
        t->told[entry.tier] = 1;
        t->options.events.never_returns(t->options.events.context, entry.tier);
    }
}

static void lose_token(struct tracker *t, struct request *r) {
    t->counts.lost_tokens += !r->damaged;
    r->damaged = true;
}

uint32_t entry_request(struct tracker *t, const struct process *p, const struct tracker_call *call) {
    struct request *r = request_at(t, p->begun);
    if (call->token != r->token && request_find(t, call->token) != p->begun) {
        lose_token(t, r); // a message brought another's: work that this process has given away is counted there
    }
    r->last = call->time > r->last ? call->time : r->last;
    return p->begun;
}

// A token that another request has already, and still needs: neither is known to have what comes under it.
static bool taken(struct tracker *t, uint64_t token) {
    uint32_t known = request_find(t, token);
    if (known == MAP_NONE || !request_at(t, known)->has_begin || request_at(t, known)->has_end) {
        return false;
    }
    request_at(t, known)->damaged = true;
    return true;
}

struct request_ref tracker_enter(struct tracker *t, const struct tracker_call *call) {
    struct process *p = process_for(t, call->pid, call->time);
    bool doubtful = false;
    if (p && in_entry(t, p)) {
        if (request_at(t, p->begun)->losses == t->losses) {
            add_token(t, p->begun, call->token);
            return take_call(t, call, call->tier);
        }
        // Messages were lost since the call that is open began, perhaps its return: this one is inside of it, or comes after it.
        request_at(t, p->begun)->damaged = doubtful = true;
        request_ends(t, p->begun, &(struct tracker_end){.pid = call->pid, .time = call->time});
    }
    doubtful |= taken(t, call->token);
    struct request_ref begun = tracker_begin(t, call);
    if (begun.index == SPAN_NONE) {
        return begun;
    }
    struct request *r = request_at(t, begun.index);
    r->by_entry = true;
    r->root_pid = call->pid;
    r->damaged = r->damaged || doubtful;
    if (take_call(t, call, call->tier).index != SPAN_NONE) {
        r->root = r->count - 1;
    }
    return begun;
}

void tracker_left_out(struct tracker *t, uint64_t pid) {
    struct process *p = process_find(t, pid);
    if (p && in_entry(t, p)) {
        lose_token(t, request_at(t, p->begun));
    }
}
