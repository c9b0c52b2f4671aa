// SPDX-License-Identifier: Apache-2.0
#include "base/text_time.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time_math.h"

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

// Reads a day in front of a time, if there is one: 2026-11-20, today, yesterday; else it is today.
// Returns what stands behind it.
static const char *parse_day(const char *text, int64_t now_ns, struct tm *day) {
    static const char *const names[] = {"today", "yesterday"};
    time_t now = (time_t)(now_ns / 1000000000 - (now_ns % 1000000000 < 0));
    const char *rest = strptime(text, "%Y-%m-%d", day);
    if (rest) {
        return rest;
    }
    tzset();
    if (!localtime_r(&now, day)) {
        *day = (struct tm){.tm_year = -1}; // no day that a time can be of
    }
    day->tm_hour = day->tm_min = day->tm_sec = 0;
    for (int back = 0; back < 2; back++) {
        size_t len = strlen(names[back]);
        if (strncmp(text, names[back], len) == 0) {
            struct tm noon = *day; // every day has one
            noon.tm_mday -= back;
            noon.tm_hour = 12;
            noon.tm_isdst = -1;
            mktime(&noon);
            day->tm_year = noon.tm_year, day->tm_mon = noon.tm_mon, day->tm_mday = noon.tm_mday;
            return text + len;
        }
    }
    return text;
}

static bool same_day(const struct tm *a, const struct tm *b) {
    return a->tm_mday == b->tm_mday && a->tm_mon == b->tm_mon && a->tm_year == b->tm_year;
}

// The local time; of one that comes twice, as summer time ends, the first. False when there is no
// such time: it is left out as summer time begins, or the day is none of its month.
static bool local_seconds(const struct tm *at, bool day_alone, time_t *seconds) {
    for (int dst = 1; dst >= -1; dst -= 2) {
        struct tm same = *at;
        same.tm_isdst = dst;
        time_t found = mktime(&same);
        bool as_said = same.tm_hour == at->tm_hour && same.tm_min == at->tm_min;
        if (same_day(&same, at) && (dst < 0 || same.tm_isdst == 1) &&
            (as_said || (day_alone && dst < 0))) { // a day may begin at 1:00
            *seconds = found;
            return true;
        }
    }
    return false;
}

// Reads a day, a time of the day, or both, with a Z behind them for UTC.
static bool parse_clock(const char *text, int64_t now_ns, time_t *seconds) {
    struct tm at = {0};
    const char *rest = parse_day(text, now_ns, &at);
    bool day = rest != text, time_of_day = false;
    if (*rest != 0 && (!day || *rest == ' ' || *rest == 'T')) {
        const char *from = rest + day, *end = strptime(from, "%H:%M:%S", &at);
        end = end ? end : strptime(from, "%H:%M", &at);
        time_of_day = end && *from >= '0' && *from <= '9';
        rest = time_of_day ? end : rest;
    }
    bool utc = time_of_day && strcmp(rest, "Z") == 0;
    if ((!day && !time_of_day) || (*rest != 0 && !utc)) {
        return false;
    }
    if (utc) {
        struct tm same = at;
        *seconds = timegm(&same); // makes the 31st of February one of March
        return same_day(&same, &at);
    }
    return local_seconds(&at, !time_of_day, seconds);
}

bool text_time_parse(const char *text, int64_t now_ns, int64_t *ns) {
    time_t seconds;
    int64_t back;
    if (strcmp(text, "now") == 0) {
        *ns = now_ns;
        return true;
    }
    if (text_duration_parse(text, &back)) {
        *ns = now_ns - back;
        return true;
    }
    // 1677 to 2262
    if (!parse_clock(text, now_ns, &seconds) || seconds < INT64_MIN / 1000000000 ||
        seconds > INT64_MAX / 1000000000) {
        return false;
    }
    *ns = (int64_t)seconds * 1000000000;
    return true;
}

// The same local time so many days earlier. Where it was left out, the time right after it.
static int64_t days_earlier(int64_t ns, int days) {
    int64_t rest = ns % 1000000000;
    rest += rest < 0 ? 1000000000 : 0;
    time_t seconds = (time_t)(time_sub(ns, rest) / 1000000000);
    struct tm at;
    tzset();
    if (!localtime_r(&seconds, &at)) {
        return time_sub(ns, days * 86400 * 1000000000LL);
    }
    at.tm_mday -= days;
    at.tm_isdst = -1;
    return time_add(time_of_seconds((int64_t)mktime(&at)), rest);
}

const char *text_against_parse(const char *text, int64_t from_ns, int64_t until_ns,
                               int64_t *before_from_ns, int64_t *before_until_ns) {
    static const char behind[] = " before";
    char length[32];
    size_t len = strlen(text), words = strlen(behind);
    int64_t whole = time_sub(until_ns, from_ns), back = 0, from = 0;
    if (strcmp(text, "before") == 0) {
        from = time_sub(from_ns, whole);
    } else if (strcmp(text, "yesterday") == 0 || strcmp(text, "last week") == 0) {
        from = days_earlier(from_ns, strcmp(text, "yesterday") == 0 ? 1 : 7);
    } else if (len > words && len - words < sizeof length &&
               strcmp(text + len - words, behind) == 0 &&
               text_duration_parse(memcpy(memset(length, 0, sizeof length), text, len - words),
                                   &back)) {
        from = time_sub(from_ns, back);
    } else {
        return "is none of: before, yesterday, last week, or a length such as \"1h before\"";
    }
    if (time_add(from, whole) > from_ns) {
        return "is within the time itself: both stretches would share a part of it";
    }
    *before_from_ns = from;
    *before_until_ns = time_add(from, whole);
    return NULL;
}
