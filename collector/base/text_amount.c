// SPDX-License-Identifier: Apache-2.0
#include "base/text_amount.h"

#include <stddef.h>
#include <stdio.h>

static const char *const durations[] = {"ns", "µs", "ms", "s"};

// The unit that leaves a value two or three digits, which *value then is of; the last unit takes
// what is left. *decimals: how many it is shown with.
static int scale(double *value, int last, int *decimals) {
    int unit = 0;
    // 999.5 and more would be shown as 1000
    while (unit < last && *value >= 999.5) {
        *value /= 1000;
        unit++;
    }
    *decimals = unit > 0 && *value < 9.95 ? 1 : 0;
    return unit;
}

static void scaled(double value, const char *const *units, int last, char *out, size_t room) {
    int decimals;
    int unit = scale(&value, last, &decimals);
    snprintf(out, room, "%.*f %s", decimals, value, units[unit]);
}

char *text_duration(double ns, char out[TEXT_DURATION_BYTES]) {
    scaled(ns, durations, 3, out, TEXT_DURATION_BYTES);
    return out;
}

double text_duration_digit(double ns, const char **unit, int *decimals) {
    int u = scale(&ns, 3, decimals);
    double digit = *decimals > 0 ? 0.1 : 1;
    *unit = durations[u];
    for (; u > 0; u--) {
        digit *= 1000;
    }
    return digit;
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
