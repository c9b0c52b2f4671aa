// SPDX-License-Identifier: Apache-2.0
// The captures of tests/data, for tests that run over all of them.
#pragma once

static const char *const captures[] = {"otp25-basic", "otp25-entry", "otp25-joins",
                                       "otp25-kinds", "otp25-meta",  "otp25-rto",
                                       "otp25-ts",    "otp25-zoo",   "otp27-calls"};
enum { CAPTURES = sizeof captures / sizeof *captures };
