%% SPDX-License-Identifier: Apache-2.0
%% eunit, with time limits for what hangs: a test has five seconds of its own accord, which a busy
%% machine may take for nothing. Tests that are functions say {timeout, 300, ...} themselves: lint
%% looks for those that do not.
-include_lib("eunit/include/eunit.hrl").
-undef(_test).
-define(_test(Expr), {timeout, 300, {?LINE, fun() -> (Expr) end}}).
