// SPDX-License-Identifier: Apache-2.0
// The address of a question to the page's API: its path, and what stands behind the "?"; and the
// forms that a scraper takes (Accept).
#include <string.h>

#include "fuzz.h"
#include "web/accept.h"
#include "web/answers.h"
#include "web/params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char why[PARAMS_WHY_BYTES] = "";
    struct params p;
    int64_t id = 0;
    char *text = malloc(size + 1);
    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    enum meters_form form = accept_form(text);
    MUST(form == METERS_PROMETHEUS ||
         strcasestr(text, form == METERS_OPEN ? "openmetrics" : "protobuf"));
    char *mark = strchr(text, '?');
    if (mark) {
        *mark = 0;
    }
    const struct address *address = address_find(text, &id);
    MUST(!address || text[0] == '/');
    MUST(id >= 0);
    if (params_parse(mark ? mark + 1 : text, 1763640000, &p, why)) {
        MUST(p.from_s >= 0 && p.from_s < p.until_s);
        MUST(p.most > 0 && p.points > 0 && p.points <= LIMIT_SERIES_STEPS / 2);
        MUST(memchr(p.node, 0, sizeof p.node) && memchr(p.identity, 0, sizeof p.identity));
        MUST(p.metric < FLAME_METRICS && p.group < FLAME_GROUPS);
        MUST(p.part.until == 0 || p.part.from < p.part.until);
        MUST(p.other.until == 0 || p.other.from < p.other.until);
        MUST(memchr(p.tier, 0, sizeof p.tier) && p.before_from_s <= p.before_until_s);
    } else {
        MUST(why[0] && strlen(why) < sizeof why);
    }
    free(text);
    return 0;
}
