// SPDX-License-Identifier: Apache-2.0
// Numbers as text for people: durations, sizes, counts. Pure.
#pragma once

#include <stdint.h>

enum {
    TEXT_DURATION_BYTES = 32,
    TEXT_SIZE_BYTES = 32,
    TEXT_PERCENT_BYTES = 32,
    TEXT_GROUPED_BYTES = 32
};

// "340 ns", "1.2 ms", "50 ms", "3.1 s": two or three digits; from 1000 s on whole seconds. Returns
// out.
char *text_duration(double ns, char out[TEXT_DURATION_BYTES]);

// What the last digit of that text is worth, ns; with which unit and how many decimals it is shown.
double text_duration_digit(double ns, const char **unit, int *decimals);

// "340 B", "1.2 KB", "50 MB": in thousands, two or three digits. Returns out.
char *text_size(double bytes, char out[TEXT_SIZE_BYTES]);

// Of a share (1 is all): "83 %", "3.7 %", "<0.1 %". Returns out.
char *text_percent(double share, char out[TEXT_PERCENT_BYTES]);

// "1,234,567". Returns out.
char *text_grouped(uint64_t count, char out[TEXT_GROUPED_BYTES]);

// "s" behind a noun, or nothing when there is one of it.
const char *text_plural(uint64_t count);
