// SPDX-License-Identifier: Apache-2.0
// What kprof slow prints. Text out, nothing else; check out->failed. All of these take answers that
// the functions below have cleaned.
#pragma once

#include "report/slow.h"
#include "tool/source.h"
#include "tool/waterfall.h"

// Overwrite, in place, what could steer a terminal.
void slow_clean_list(struct slow_list *list);
void slow_clean_spans(struct slow_spans *spans);

// The list: a line a request and how to see one of them. limited: there may be more than these.
void slow_table(const struct slow_list *list, const struct source *source, bool limited,
                struct buffer *out);
// One request: a line on it, then its waterfall.
void slow_waterfall(const struct slow_spans *spans, const struct waterfall_style *style,
                    struct buffer *out);
