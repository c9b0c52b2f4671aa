// SPDX-License-Identifier: Apache-2.0
// A mirror (store/mirror.h) of a file, for tests: it gets its rows out of the file one by one, not
// added up, with conditions of its own. So what is true of a file must be true of it.
#pragma once

#include "store/mirror.h"

// Opens it. Fails the test when that fails.
struct store *mirror_fixture(const char *path);
