// SPDX-License-Identifier: Apache-2.0
#include "web/params.h"

#include <errno.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { HOUR_S = 3600, MOST = 50, MOST_AT_MOST = 1000, POINTS = 240 };
// the year 9999, so that sums of times stay times
static const int64_t LAST_S = 253402300799;

struct reading {
    int64_t now_s;
    struct params *out;
    char *why;
    int64_t last_s; // 0: not told
    bool from, until;
};

static bool number(struct reading *r, const struct evkeyval *pair, int64_t least, int64_t most,
                   int64_t *out) {
    char *end;
    errno = 0;
    long long value = strtoll(pair->value, &end, 10);
    if (errno || end == pair->value || *end || value < least || value > most) {
        snprintf(r->why, PARAMS_WHY_BYTES, "%s: want a whole number from %lld to %lld", pair->key,
                 (long long)least, (long long)most);
        return false;
    }
    *out = value;
    return true;
}

static bool small(struct reading *r, const struct evkeyval *pair, int64_t most, uint32_t *out) {
    int64_t value = 0;
    bool ok = number(r, pair, 1, most, &value);
    *out = (uint32_t)value;
    return ok;
}

static bool text(struct reading *r, const struct evkeyval *pair, char out[PARAMS_TEXT_BYTES]) {
    if (strlen(pair->value) >= PARAMS_TEXT_BYTES) {
        snprintf(r->why, PARAMS_WHY_BYTES, "%s: at most %d bytes", pair->key,
                 PARAMS_TEXT_BYTES - 1);
        return false;
    }
    strcpy(out, pair->value);
    return true;
}

static bool take(struct reading *r, const struct evkeyval *pair) {
    const char *key = pair->key;
    int64_t flag = 0;
    if (strcmp(key, "from") == 0) {
        r->from = true;
        return number(r, pair, 0, LAST_S, &r->out->from_s);
    }
    if (strcmp(key, "until") == 0) {
        r->until = true;
        return number(r, pair, 0, LAST_S, &r->out->until_s);
    }
    if (strcmp(key, "last") == 0) {
        return number(r, pair, 1, LAST_S, &r->last_s);
    }
    if (strcmp(key, "node") == 0) {
        return text(r, pair, r->out->node);
    }
    if (strcmp(key, "identity") == 0) {
        return text(r, pair, r->out->identity);
    }
    if (strcmp(key, "before") == 0) {
        return text(r, pair, r->out->before);
    }
    if (strcmp(key, "most") == 0) {
        return small(r, pair, MOST_AT_MOST, &r->out->most);
    }
    if (strcmp(key, "points") == 0) {
        return small(r, pair, LIMIT_SERIES_STEPS / 2, &r->out->points);
    }
    if (strcmp(key, "failed") == 0) {
        bool ok = number(r, pair, 0, 1, &flag);
        r->out->failed = flag != 0;
        return ok;
    }
    snprintf(r->why, PARAMS_WHY_BYTES, "%.40s: nothing of that name can be asked for", key);
    return false;
}

static bool once(struct reading *r, const struct evkeyvalq *all, const struct evkeyval *pair) {
    const struct evkeyval *other;
    TAILQ_FOREACH(other, all, next) {
        if (other != pair && strcmp(other->key, pair->key) == 0) {
            snprintf(r->why, PARAMS_WHY_BYTES, "%.40s stands twice", pair->key);
            return false;
        }
    }
    return true;
}

static bool take_all(struct reading *r, const struct evkeyvalq *all) {
    const struct evkeyval *pair;
    TAILQ_FOREACH(pair, all, next) {
        if (!take(r, pair) || !once(r, all, pair)) {
            return false;
        }
    }
    return true;
}

static bool set_times(struct reading *r) {
    struct params *p = r->out;
    if (r->last_s != 0 && (r->from || r->until)) {
        snprintf(r->why, PARAMS_WHY_BYTES, "either last, or from and until");
        return false;
    }
    p->bounded = r->last_s != 0 || r->from || r->until;
    if (!r->until) {
        p->until_s = r->now_s;
    }
    if (!r->from) {
        int64_t last_s = r->last_s != 0 ? r->last_s : HOUR_S;
        p->from_s = p->until_s > last_s ? p->until_s - last_s : 0;
    }
    if (p->from_s >= p->until_s) {
        snprintf(r->why, PARAMS_WHY_BYTES, "from must be before until");
        return false;
    }
    return true;
}

bool params_parse(const char *query, int64_t now_s, struct params *out,
                  char why[PARAMS_WHY_BYTES]) {
    struct evkeyvalq all;
    *out = (struct params){.most = MOST, .points = POINTS};
    struct reading reading = {.now_s = now_s, .out = out, .why = why};
    if (!query || !*query) {
        return set_times(&reading);
    }
    if (evhttp_parse_query_str(query, &all) != 0) {
        snprintf(why, PARAMS_WHY_BYTES, "what stands behind the ? cannot be read");
        return false;
    }
    bool ok = take_all(&reading, &all) && set_times(&reading);
    evhttp_clear_headers(&all);
    return ok;
}
