%% SPDX-License-Identifier: Apache-2.0
%% What kprof_elli asks elli's module of this name, for scenario_web_elli.
-module(elli_request).

-export([new/1, method/1, raw_path/1, body/1, headers/1]).

-spec new(map()) -> tuple().
new(Request) -> {req, Request}.

-spec method(tuple()) -> atom() | binary().
method({req, #{method := Method}}) -> binary_to_atom(Method, utf8).

-spec raw_path(tuple()) -> binary().
raw_path({req, #{path := Path}}) -> Path.

-spec body(tuple()) -> binary().
body({req, #{body := Body}}) -> Body.

%% The last one first, and their names as they came.
-spec headers(tuple()) -> [{binary(), binary()}].
headers({req, #{headers := Headers}}) ->
    [{string:uppercase(Name), Value} || {Name, Value} <- lists:reverse(Headers)].
