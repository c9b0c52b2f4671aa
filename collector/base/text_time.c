// SPDX-License-Identifier: Apache-2.0
#include "base/text_time.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

char *text_time_format(int64_t ns, bool milliseconds, char out[TEXT_TIME_BYTES]) {
    int64_t s = ns / 1000000000;
    int64_t rest = ns % 1000000000;
    if (rest < 0) {
        s--;
        rest += 1000000000;
    }
    time_t seconds = (time_t)s;
    struct tm utc;
    if (!gmtime_r(&seconds, &utc) || utc.tm_year < -1900 || utc.tm_year > 8099) {
        return strcpy(out, "invalid");
    }
    size_t n = strftime(out, TEXT_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &utc);
    if (milliseconds && rest / 1000000 != 0) {
        snprintf(out + n, TEXT_TIME_BYTES - n, ".%03dZ", (int)(rest / 1000000));
    } else {
        strcpy(out + n, "Z");
    }
    return out;
}

bool text_duration_parse(const char *text, int64_t *ns) {
    char *end;
    double value = strtod(text, &end);
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1}, {"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    if (end == text || !isfinite(value) || value < 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) == 0 && value * units[i].seconds <= 36525 * 86400.0) {
            *ns = (int64_t)llround(value * units[i].seconds * 1e9);
            return true;
        }
    }
    return false;
}

bool text_time_parse(const char *text, int64_t now_ns, int64_t *ns) {
    static const char *const formats[] = {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S",
                                          "%Y-%m-%d %H:%M:%S",  "%Y-%m-%dT%H:%MZ",
                                          "%Y-%m-%d %H:%M",     "%Y-%m-%d"};
    if (strcmp(text, "now") == 0) {
        *ns = now_ns;
        return true;
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct tm utc = {0};
        const char *end = strptime(text, formats[i], &utc);
        // timegm turns the 31st of February into March: what comes back must be what was read
        struct tm same = utc;
        if (end && *end == 0) {
            time_t seconds = timegm(&same);
            // 1677 to 2262
            bool fits = seconds >= INT64_MIN / 1000000000 && seconds <= INT64_MAX / 1000000000;
            if (fits && same.tm_mday == utc.tm_mday && same.tm_mon == utc.tm_mon) {
                *ns = (int64_t)seconds * 1000000000;
                return true;
            }
            return false;
        }
    }
    int64_t back;
    if (!text_duration_parse(text, &back)) {
        return false;
    }
    *ns = now_ns - back;
    return true;
}
