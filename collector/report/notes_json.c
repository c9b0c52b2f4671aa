// SPDX-License-Identifier: Apache-2.0
#include "report/notes_json.h"

#include "base/text_time.h"

void note_keys(struct json *j, const struct note *note) {
    json_key(j, "node");
    note->node[0] ? json_text(j, note->node) : json_null(j);
    json_key_text(j, "text", note->text);
}

void note_json(struct json *j, const struct note *note) {
    char at[TEXT_TIME_BYTES];
    json_open(j, '{');
    json_key_int(j, "id", note->id);
    json_key_text(j, "at", text_time_format(note->at_ns, true, at));
    json_key_int(j, "at_s", note->at_ns / 1000000000);
    note_keys(j, note);
    json_close(j, '}');
}

void notes_json(struct json *j, const struct note_list *list) {
    json_key(j, "notes");
    json_open(j, '[');
    for (uint32_t i = 0; i < list->count; i++) {
        note_json(j, &list->notes[i]);
    }
    json_close(j, ']');
}

void note_list_json(const struct note_list *list, struct buffer *out) {
    struct json j = json_make(out);
    json_open(&j, '{');
    notes_json(&j, list);
    json_close(&j, '}');
    buffer_text(out, "\n");
}
