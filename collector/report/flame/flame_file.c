// SPDX-License-Identifier: Apache-2.0
#include "report/flame/forms.h"

#include <string.h>

static const struct {
    const char *ending;
    void (*write)(const struct flame_drawing *d, struct buffer *out);
} formats[FLAME_FORMATS] = {
    [FLAME_HTML] = {".html", flame_html},
    [FLAME_SVG] = {".svg", flame_svg},
    [FLAME_COLLAPSED] = {".collapsed", flame_collapsed},
    [FLAME_SPEEDSCOPE] = {".speedscope.json", flame_speedscope},
    [FLAME_CHROME] = {".chrome.json", flame_chrome},
    [FLAME_PPROF] = {".pprof", flame_pprof},
    [FLAME_CALLGRIND] = {".callgrind", flame_callgrind},
    [FLAME_PERF] = {".perf.txt", flame_perf},
};

const char *flame_format_ending(enum flame_format format) {
    return formats[format].ending;
}

bool flame_format_of(const char *name, enum flame_format *format) {
    size_t len = strlen(name);
    for (enum flame_format f = 0; f < FLAME_FORMATS; f++) {
        const char *ending = formats[f].ending;
        size_t end = strlen(ending);
        if (strcmp(name, ending + 1) == 0 ||
            (len >= end && strcmp(name + len - end, ending) == 0)) {
            *format = f;
            return true;
        }
    }
    return false;
}

bool flame_file(const struct flame_drawing *d, enum flame_format format, struct buffer *out) {
    formats[format].write(d, out);
    return !out->failed;
}
