// SPDX-License-Identifier: Apache-2.0
// Names are stored once; rows hold their ids. What the directory's ids are in the file is
// remembered.
#include <stdio.h>

#include "internal.h"

enum { PATH_BYTES = LIMIT_PATH_DEPTH * (LIMIT_NAME_BYTES + sizeof " > ") };

int64_t store_name_id(struct store *s, enum statement insert, enum statement find,
                      const char *text) {
    int64_t id = 0;
    sqlite3_stmt *adding = store_prepared(s, insert);
    sqlite3_stmt *finding = store_prepared(s, find);
    if (!adding || !finding) {
        return 0;
    }
    sqlite3_bind_text(adding, 1, text, -1, SQLITE_STATIC);
    sqlite3_bind_text(finding, 1, text, -1, SQLITE_STATIC);
    if (store_run(s, adding, "add a name")) {
        if (sqlite3_step(finding) == SQLITE_ROW) {
            id = sqlite3_column_int64(finding, 0);
        } else {
            store_fail(s, "find a name");
        }
    }
    sqlite3_reset(finding);
    sqlite3_clear_bindings(adding);
    sqlite3_clear_bindings(finding);
    return id;
}

// The same, remembered in *cached for as long as the directory's id is this name's.
static int64_t row_of(struct store *s, struct row_id *cached, enum statement insert,
                      enum statement find, const struct names *names, uint16_t id) {
    uint32_t generation = names_generation(names, id);
    if (cached->row == 0 || cached->generation != generation) {
        *cached =
            (struct row_id){store_name_id(s, insert, find, names_text(names, id)), generation};
    }
    return cached->row;
}

int64_t store_node_id(struct store *s, uint16_t id) {
    return row_of(s, &s->node_ids[id], STATEMENT_ADD_NODE, STATEMENT_FIND_NODE,
                  &s->directory->nodes, id);
}

int64_t store_identity_id(struct store *s, uint16_t id) {
    return row_of(s, &s->identity_ids[id], STATEMENT_ADD_IDENTITY, STATEMENT_FIND_IDENTITY,
                  &s->directory->identities, id);
}

int64_t store_tier_id(struct store *s, uint16_t id) {
    return row_of(s, &s->tier_ids[id], STATEMENT_ADD_TIER, STATEMENT_FIND_TIER,
                  &s->directory->tiers, id);
}

// The tiers from the request down, joined. Two paths whose text is the same (a tier's name may hold
// " > ") are one in the file.
static void path_text(const struct directory *d, uint32_t id, char out[PATH_BYTES]) {
    uint16_t tiers[LIMIT_PATH_DEPTH];
    int depth = 0;
    size_t len = 0;
    for (; id != PATH_ROOT && depth < (int)LIMIT_PATH_DEPTH; id = d->paths.all[id].parent) {
        tiers[depth++] = d->paths.all[id].tier;
    }
    out[0] = 0;
    while (depth-- > 0) {
        int n = snprintf(out + len, PATH_BYTES - len, "%s%s", len > 0 ? " > " : "",
                         names_text(&d->tiers, tiers[depth]));
        len += (size_t)n;
    }
}

int64_t store_path_id(struct store *s, uint32_t id) {
    char text[PATH_BYTES] = "_other";
    uint32_t place = id == PATH_OTHER ? PATH_ROOT : id; // which no row is of
    struct row_id *cached = &s->path_ids[place];
    uint32_t generation = s->directory->paths.all[place].generation;
    if (cached->row == 0 || cached->generation != generation) {
        if (id != PATH_OTHER) {
            path_text(s->directory, id, text);
        }
        *cached = (struct row_id){store_name_id(s, STATEMENT_ADD_PATH, STATEMENT_FIND_PATH, text),
                                  generation};
    }
    return cached->row;
}

void store_forget_ids(struct store *s) {
    memset(s->node_ids, 0, sizeof s->node_ids);
    memset(s->identity_ids, 0, sizeof s->identity_ids);
    memset(s->tier_ids, 0, sizeof s->tier_ids);
    memset(s->path_ids, 0, sizeof s->path_ids);
}
