// SPDX-License-Identifier: Apache-2.0
// Notes of what people did, as JSON.
#pragma once

#include "codec/json.h"
#include "store/notes.h"

// Of a note: its keys node (null: of all of them) and text.
void note_keys(struct json *j, const struct note *note);
// One: id, at (UTC), at_s, node, text.
void note_json(struct json *j, const struct note *note);
// The key notes: a list of them, the latest first.
void notes_json(struct json *j, const struct note_list *list);
// One JSON object and a newline: notes, a list of them, the latest first. Check out->failed.
void note_list_json(const struct note_list *list, struct buffer *out);
