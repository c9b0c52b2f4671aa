// Names of nodes as people give and read them: shop@web1.example.org is also shop@web1, and shop where that is enough to tell.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "store/store.h"

enum { NODE_TEXT_BYTES = LIMIT_NAME_BYTES + 4 };

// Whether a node may be meant: its full name, its name with the start of its host (whole words of it), or its name alone.
bool node_meant(const char *full, const char *text);

// The name with its short host, as far as that tells it: an address stays whole. Cut at NODE_TEXT_BYTES. Returns out.
char *node_short(const char *full, char out[NODE_TEXT_BYTES]);

// The value of --node as a full name. *node is it, in `found` or text itself: a full name, one that only this node of the file can be meant by,
// or when there is none the text as it is. EXIT_USAGE, and has told why, when several are meant; EXIT_FAILURE when they cannot be read.
int node_find(const char *command, struct store *store, const char *text, char found[NODE_TEXT_BYTES], const char **node);
