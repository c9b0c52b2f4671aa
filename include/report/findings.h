// SPDX-License-Identifier: Apache-2.0
// What is to be known before the numbers of an answer are read: why they cannot be trusted, since
// when, how many of what, and what to do. One thread at a time; nothing is allocated.
#pragma once

#include <stdint.h>

#include "store/query.h"

// The kinds, in the order in which they are told, and their names in JSON.
#define FINDING_KINDS(X)                                                                           \
    X(PAUSED, "paused")         /* for a part of the time nothing was traced */                    \
    X(LOSSY, "lossy")           /* something was lost */                                           \
    X(UNCLEAR, "unclear")       /* of some requests nobody can tell whose work their calls were */ \
    X(INCOMPLETE, "incomplete") /* why requests are */                                             \
    X(BIASED, "biased")         /* long requests are missing, so the times are too short */        \
    X(STALE, "stale")           /* many calls came when their request was over */                  \
    X(COARSE, "coarse")         /* percentiles are less exact */                                   \
    X(OVERLOADED, "overloaded") /* the guard took the trace off */                                 \
    X(DROPPED, "dropped")       /* messages were */                                                \
    X(LENT, "lent")             /* requests that went on under a label lent to them */             \
    X(LOST_TOKENS, "lost_tokens") /* requests that lost their token on the way */                  \
    X(EXPIRED, "expired")         /* requests without an end */                                    \
    X(UNWRITTEN, "unwritten")     /* rows that the database did not take */                        \
    X(AMBIGUOUS, "ambiguous")     /* returns that could be of several calls */                     \
    X(UNMARKED, "unmarked")       /* tiers are called, but nothing begins a request */             \
    X(RELOADED, "reloaded")       /* code was, which took trace patterns off */                    \
    X(UNTRACED, "untraced")       /* somebody else took trace flags off */

#define FINDING_KIND(kind, name) FINDING_##kind,
enum finding_kind { FINDING_KINDS(FINDING_KIND) FINDINGS };
#undef FINDING_KIND

enum finding_level {
    FINDING_NOTE,    // the numbers are right
    FINDING_WARNING, // they may be wrong
    FINDING_PROBLEM  // something that happened is not in them
};

enum { FINDING_TEXT_BYTES = 256, FINDING_COUNT_BYTES = 128, FINDING_COUNTS = 19 + QUERY_STALE };

// One number of a finding.
struct finding_count {
    const char *name;               // of a column of the ledger; of FINDING_STALE a tier
    uint64_t count;                 // milliseconds where the name of the column ends in _ms
    uint64_t of;                    // how many there were in all; 0: not told
    char text[FINDING_COUNT_BYTES]; // "7 messages dropped"; of a tier "3 of 410", without its name
};

// A finding reads "Title: text: counts: advice." or, with a meaning, "Title: text: counts.
// Meaning." What it does not have is left out. It has counts or a text, and never both a meaning
// and advice.
struct finding {
    enum finding_kind kind;
    enum finding_level level;
    // start of the first bucket in which it was so, seconds since 1970 UTC; 0: not known
    int64_t since_s;
    const char *title;             // a word; NULL: none
    char text[FINDING_TEXT_BYTES]; // what is the matter; "": the counts say it
    const struct finding_count *counts;
    uint32_t count;      // of them
    const char *meaning; // what that makes of the numbers, whole sentences; NULL: the text says it
    const char *advice;  // what to do; NULL: nothing
};

// All of an answer, none of a kind twice. Not to be copied: it points into itself. It borrows the
// names of tiers from the answer.
struct findings {
    struct finding list[FINDINGS];
    uint32_t count;
    struct finding_count counts[FINDING_COUNTS]; // of all findings
    uint32_t counted;
};

void findings_make(struct findings *f, const struct query_sums *sums);
// The name of a kind or a level in JSON.
const char *finding_kind_name(enum finding_kind kind);
const char *finding_level_name(enum finding_level level);
