// SPDX-License-Identifier: Apache-2.0
#include "base/text_time.h"
#include "tool/report/print.h"
#include "tool/text.h"

void report_notes(const struct note_list *notes, struct buffer *out) {
    uint32_t shown = notes->count < REPORT_NOTES ? notes->count : REPORT_NOTES;
    if (shown > 0) {
        buffer_text(out, "\n Notes\n");
    }
    if (notes->count > shown) {
        buffer_text(out, "   earlier ones are left out; --since and --until choose others\n");
    }
    for (uint32_t i = shown; i-- > 0;) {
        struct note note = notes->notes[i]; // the latest stand first
        char at[TEXT_TIME_BYTES];
        text_clean(note.text);
        text_clean(note.node);
        buffer_printf(out, "   %s  %s%s%s%s\n", text_time_format(note.at_ns, false, at), note.text,
                      note.node[0] ? " (" : "", note.node, note.node[0] ? ")" : "");
    }
}
