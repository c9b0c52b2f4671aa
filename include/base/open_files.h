// SPDX-License-Identifier: Apache-2.0
// How many files this process may have open.
#pragma once

#include <stdint.h>

// Allows it `wanted` open files, where its hard limit lets it. Returns how many it may have now,
// perhaps fewer; 0: that is not known. One thread at a time.
uint64_t open_files_allow(uint64_t wanted);
