// SPDX-License-Identifier: Apache-2.0
#include "tool/steered.h"

#include <stdio.h>

#include "tool/command.h"
#include "tool/text.h"

struct steered steered_read(struct control_map answer) {
    struct steered s = {0};
    control_get_bool(answer, FIELD_OK, &s.ok);
    text_take(answer, FIELD_TEXT, s.text, sizeof s.text);
    return s;
}

int steered_tell(const char *command, const char *node, const struct steered *s) {
    if (!s->ok) {
        return command_fail(command, EXIT_FAILURE, "%s: %s", node, s->text);
    }
    printf("%s: %s\n", node, s->text);
    return EXIT_SUCCESS;
}

void steered_json(struct json *j, const char *node, const char *order, const struct steered *s) {
    json_key_text(j, "node", node);
    json_key_text(j, "command", order);
    json_key(j, "ok");
    json_bool(j, s->ok);
    json_key_text(j, "text", s->text);
}
