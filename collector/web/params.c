// SPDX-License-Identifier: Apache-2.0
#include "web/params.h"

#include <errno.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/text_time.h"
#include "base/time_math.h"
#include "store/query.h"

enum { SECOND_NS = 1000000000, HOUR_S = 3600, MOST = 50, MOST_AT_MOST = 1000, POINTS = 240 };
// the year 9999, so that sums of times stay times
static const int64_t LAST_S = 253402300799;
static const int64_t PARTS_UNTIL_MS = 1000 * (int64_t)LIMIT_SAMPLE_SECONDS;

struct reading {
    int64_t now_s;
    struct params *out;
    char *why;
    int64_t last_s; // 0: not told
    bool from, until, before_from, before_until;
    const char *against; // NULL: not told
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

// Whether a name is that of a time, which then is taken; *ok: and could be read.
static bool take_time(struct reading *r, const struct evkeyval *pair, bool *ok) {
    const char *key = pair->key;
    bool *told = NULL;
    int64_t least = 0, *out = &r->last_s;
    if (strcmp(key, "from") == 0) {
        told = &r->from, out = &r->out->from_s;
    } else if (strcmp(key, "until") == 0) {
        told = &r->until, out = &r->out->until_s;
    } else if (strcmp(key, "before_from") == 0) {
        told = &r->before_from, out = &r->out->before_from_s;
    } else if (strcmp(key, "before_until") == 0) {
        told = &r->before_until, out = &r->out->before_until_s;
    } else if (strcmp(key, "last") == 0) {
        least = 1;
    } else {
        return false;
    }
    *ok = number(r, pair, least, LAST_S, out);
    if (told) {
        *told = true;
    }
    return true;
}

// Whether a name is that of an end of a part of a profile, which then is taken; *ok: and could be
// read.
static bool take_part(struct reading *r, const struct evkeyval *pair, bool *ok) {
    const char *key = pair->key;
    uint32_t *out;
    int64_t value = 0, least = 0;
    if (strcmp(key, "part_from") == 0) {
        out = &r->out->part.from;
    } else if (strcmp(key, "part_until") == 0) {
        out = &r->out->part.until, least = 1;
    } else if (strcmp(key, "before_part_from") == 0) {
        out = &r->out->other.from;
    } else if (strcmp(key, "before_part_until") == 0) {
        out = &r->out->other.until, least = 1;
    } else {
        return false;
    }
    *ok = number(r, pair, least, PARTS_UNTIL_MS, &value);
    *out = (uint32_t)value;
    return true;
}

// How a profile is weighed: by what, and what its lowest frames are.
static bool take_weighing(struct reading *r, const struct evkeyval *pair) {
    bool metric = strcmp(pair->key, "metric") == 0;
    bool known = metric ? flame_metric_parse(pair->value, &r->out->metric)
                        : flame_group_parse(pair->value, &r->out->group);
    r->out->metric_told = r->out->metric_told || metric;
    if (!known) { // all names have room: a test asks for them
        size_t len = (size_t)snprintf(r->why, PARAMS_WHY_BYTES, "%s: want one of", pair->key);
        for (int i = 0;
             len < PARAMS_WHY_BYTES && i < (metric ? (int)FLAME_METRICS : (int)FLAME_GROUPS); i++) {
            const char *name = metric ? flame_metric_name((enum flame_metric)i)
                                      : flame_group_name((enum flame_group)i);
            len += (size_t)snprintf(r->why + len, PARAMS_WHY_BYTES - len, " %s", name);
        }
    }
    return known;
}

// One name more of a choice.
static bool choice(struct reading *r, const struct evkeyval *pair, char out[PARAMS_CHOICE_BYTES]) {
    char name[PARAMS_TEXT_BYTES];
    if (!text(r, pair, name)) {
        return false;
    }
    size_t names = *out != '\0';
    for (const char *at = out; *at; at++) {
        names += *at == *QUERY_OR;
    }
    if (names >= PARAMS_NAMES || strstr(name, QUERY_OR)) {
        snprintf(r->why, PARAMS_WHY_BYTES,
                 names >= PARAMS_NAMES ? "%.40s: at most %d of them"
                                       : "%.40s: a name with the byte 31 cannot be asked for",
                 pair->key, PARAMS_NAMES);
        return false;
    }
    size_t len = strlen(out); // below PARAMS_NAMES names, so there is room for one
    snprintf(out + len, PARAMS_CHOICE_BYTES - len, "%s%s", len > 0 && *name ? QUERY_OR : "", name);
    return true;
}

// All requests, and some of them besides, would count those twice.
static bool sensible(struct reading *r) {
    const char *identity = r->out->identity;
    bool twice = strchr(identity, *QUERY_OR) && query_choice_has(identity, "_total");
    if (twice) {
        snprintf(r->why, PARAMS_WHY_BYTES,
                 "identity: _total is all of them, and stands alone or not at all");
    }
    return !twice;
}

static bool take(struct reading *r, const struct evkeyval *pair) {
    const char *key = pair->key;
    int64_t flag = 0;
    bool read = false;
    if (take_time(r, pair, &read) || take_part(r, pair, &read)) {
        return read;
    }
    if (strcmp(key, "node") == 0) {
        return choice(r, pair, r->out->node);
    }
    if (strcmp(key, "cluster") == 0) {
        return choice(r, pair, r->out->cluster);
    }
    if (strcmp(key, "identity") == 0) {
        return choice(r, pair, r->out->identity) && sensible(r);
    }
    if (strcmp(key, "tier") == 0) {
        return text(r, pair, r->out->tier);
    }
    if (strcmp(key, "label") == 0) {
        return text(r, pair, r->out->label);
    }
    if (strcmp(key, "before") == 0) {
        return text(r, pair, r->out->before);
    }
    if (strcmp(key, "through") == 0) {
        return text(r, pair, r->out->through);
    }
    if (strcmp(key, "before_through") == 0) {
        return text(r, pair, r->out->before_through);
    }
    if (strcmp(key, "against") == 0) {
        r->against = pair->value;
        return true;
    }
    if (strcmp(key, "metric") == 0 || strcmp(key, "group") == 0) {
        return take_weighing(r, pair);
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
    if (strcmp(pair->key, "node") == 0 || strcmp(pair->key, "identity") == 0 ||
        strcmp(pair->key, "cluster") == 0) {
        return true;
    }
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
    p->open = !r->until;
    if (p->open) {
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

static bool set_before(struct reading *r) {
    struct params *p = r->out;
    const char *why = NULL;
    if (r->before_from != r->before_until || (r->against && r->before_from)) {
        snprintf(r->why, PARAMS_WHY_BYTES, "either against, or before_from and before_until");
        return false;
    }
    if (!r->before_from) {
        int64_t from, until;
        const char *against = r->against ? r->against : "before";
        why = text_against_parse(against, time_of_seconds(p->from_s), time_of_seconds(p->until_s),
                                 &from, &until);
        if (why) {
            snprintf(r->why, PARAMS_WHY_BYTES, "against: %.40s %s", against, why);
            return false;
        }
        p->before_from_s = from / SECOND_NS;
        p->before_until_s = until / SECOND_NS;
    } else if (p->before_from_s >= p->before_until_s) {
        snprintf(r->why, PARAMS_WHY_BYTES, "before_from must be before before_until");
        return false;
    }
    return true;
}

static bool check_part(struct reading *r, const char *name, const struct params_part *part) {
    bool ok = part->until == 0 || part->from < part->until;
    if (!ok) {
        snprintf(r->why, PARAMS_WHY_BYTES, "%s_from must be before %s_until", name, name);
    }
    return ok;
}

static bool check_parts(struct reading *r) {
    if (r->out->before_through[0] && !r->out->before[0]) {
        snprintf(r->why, PARAMS_WHY_BYTES, "before_through goes on from before");
        return false;
    }
    return check_part(r, "part", &r->out->part) && check_part(r, "before_part", &r->out->other);
}

bool params_parse(const char *query, int64_t now_s, struct params *out,
                  char why[PARAMS_WHY_BYTES]) {
    struct evkeyvalq all;
    *out = (struct params){.most = MOST, .points = POINTS, .label = "always"};
    struct reading reading = {.now_s = now_s, .out = out, .why = why};
    if (!query || !*query) {
        return set_times(&reading) && set_before(&reading);
    }
    if (evhttp_parse_query_str(query, &all) != 0) {
        snprintf(why, PARAMS_WHY_BYTES, "the part behind the ? cannot be read");
        return false;
    }
    bool ok = take_all(&reading, &all) && set_times(&reading) && set_before(&reading) &&
              check_parts(&reading);
    evhttp_clear_headers(&all);
    return ok;
}
