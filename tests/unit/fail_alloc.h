// SPDX-License-Identifier: Apache-2.0
// Scripted allocation failure: the linker gives every unit test these instead of malloc, calloc,
// realloc and strdup (--wrap), in all code that is linked statically.
#pragma once

// From now on the allocation number n (0: the next one) fails, and all after it; -1: none fails.
void fail_alloc_at(long n);
// Only allocation number n fails.
void fail_alloc_once(long n);
// Allocations since the last call of either.
long fail_alloc_count(void);
