%% What kprof_elli asks elli's module of this name, for scenario_web_elli.
-module(elli_request).

-export([new/1, method/1, raw_path/1, body/1, get_header/2]).

-spec new(map()) -> tuple().
new(Request) -> {req, Request}.

-spec method(tuple()) -> atom() | binary().
method({req, #{method := Method}}) -> binary_to_atom(Method, utf8).

-spec raw_path(tuple()) -> binary().
raw_path({req, #{path := Path}}) -> Path.

-spec body(tuple()) -> binary().
body({req, #{body := Body}}) -> Body.

-spec get_header(binary(), tuple()) -> binary() | undefined.
get_header(Name, {req, #{headers := Headers}}) -> proplists:get_value(Name, Headers).
