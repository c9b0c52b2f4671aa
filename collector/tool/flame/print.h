// SPDX-License-Identifier: Apache-2.0
// What kprof flame and kprof profiles print. Text out, nothing else; check out->failed.
#pragma once

#include "report/flame.h"
#include "report/longest.h"
#include "tool/waterfall.h"

// Overwrites, in place, what could steer a terminal.
void flame_clean_list(struct profile_list *list);

// The profiles: a line each.
void flame_list_table(const struct profile_list *list, struct buffer *out);
// The `most` functions that matter most: by their own time or, where two profiles are compared, by
// how much that has changed. Cleans names itself.
void flame_table(const struct flame_answer *a, uint32_t most, struct buffer *out);
// What single processes did, as far as that was asked for. Cleans names itself.
void flame_seen(const struct flame_answer *a, struct buffer *out);
// The longest request of a profile of that number: a line on it, its waterfall, and what is not in
// it. Cleans names itself.
void flame_request(const struct longest *longest, int64_t id, const struct waterfall_style *style,
                   struct buffer *out);
