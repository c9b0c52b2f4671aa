// The messages of one frame's term: what is read lies inside it.
#include "model/message.h"

#include "fuzz.h"

static void inside(struct slice part, const uint8_t *data, size_t size) {
    MUST(part.len == 0 || (part.data >= data && part.data + part.len <= data + size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct cursor c;
    uint32_t count = message_frame(slice_of(data, size), &c);
    for (uint32_t i = 0; i < count; i++) {
        struct message m;
        if (!message_decode(&c, &m)) {
            break;
        }
        MUST(c.at >= data && c.at <= data + size);
        char pid[32];
        message_pid_text(m.pid, pid);
        MUST(memchr(pid, 0, sizeof pid));
        message_pid_text(m.from, pid);
        inside(m.module.text, data, size);
        inside(m.function.text, data, size);
        inside(m.arguments, data, size);
        inside(m.note, data, size);
    }
    return 0;
}
