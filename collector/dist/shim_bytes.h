// SPDX-License-Identifier: Apache-2.0
// The shim in this binary, made by scripts/embed_shim.escript: terms in external format without the
// leading 131.
#pragma once

#include "base/bytes.h"

extern const struct slice shim_modules; // what kprof_visit:enter/8 takes
extern const struct slice shim_app;     // what application:load/1 takes
// what erl_eval:expr/5 takes: kprof_visit:enter/8 and leave/3
extern const struct slice shim_enter_expr;
extern const struct slice shim_leave_expr;
