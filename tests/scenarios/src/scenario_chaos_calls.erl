%% SPDX-License-Identifier: Apache-2.0
%% What scenario_chaos has traced and loads anew all the time.
-module(scenario_chaos_calls).

-export([called/1, nested/1, failing/0]).

called(N) -> N.
nested(N) -> ?MODULE:called(N) + 1.
failing() -> error(on_purpose).
