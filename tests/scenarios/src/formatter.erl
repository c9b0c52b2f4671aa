%% SPDX-License-Identifier: Apache-2.0
-module(formatter).

-export([format_response/1]).

-spec format_response(term()) -> string().
format_response(Answer) ->
    lists:flatten(io_lib:format("~0p", [Answer])).
