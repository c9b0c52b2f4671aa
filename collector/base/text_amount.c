// SPDX-License-Identifier: Apache-2.0
#include "base/text_amount.h"

#include <stddef.h>
#include <stdio.h>

// A value with the unit that leaves it two or three digits; the last unit takes what is left.
static void scaled(double value, const char *const *units, int last, char *out, size_t room) {
    int unit = 0;
    // 999.5 and more would be shown as 1000
    while (unit < last && value >= 999.5) {
        value /= 1000;
        unit++;
    }
    const char *format = unit > 0 && value < 9.95 ? "%.1f %s" : "%.0f %s";
    snprintf(out, room, format, value, units[unit]);
}

char *text_duration(double ns, char out[TEXT_DURATION_BYTES]) {
    static const char *const units[] = {"ns", "µs", "ms", "s"};
    scaled(ns, units, 3, out, TEXT_DURATION_BYTES);
    return out;
}

char *text_size(double bytes, char out[TEXT_SIZE_BYTES]) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    scaled(bytes, units, 4, out, TEXT_SIZE_BYTES);
    return out;
}

char *text_percent(double share, char out[TEXT_PERCENT_BYTES]) {
    if (share > 0 && share < 0.0005) {
        snprintf(out, TEXT_PERCENT_BYTES, "<0.1 %%");
    } else {
        snprintf(out, TEXT_PERCENT_BYTES, share < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * share);
    }
    return out;
}

char *text_grouped(uint64_t count, char out[TEXT_GROUPED_BYTES]) {
    char digits[24];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)count), len = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            out[len++] = ',';
        }
        out[len++] = digits[i];
    }
    out[len] = 0;
    return out;
}

const char *text_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}
