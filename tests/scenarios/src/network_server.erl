%% SPDX-License-Identifier: Apache-2.0
%% The application of scenario 06, with the modules that kprof's documentation takes for its
%% example. A request is a text such as "create 7"; network_server answers it in the caller's
%% process.
-module(network_server).

-export([run/1, parse_request/1]).

-spec run(string()) -> string().
run(Text) ->
    {Kind, Id} = parse_request(Text),
    Answer = requests:handle_request(Kind, Id),
    formatter:format_response(Answer).

-spec parse_request(string()) -> {atom(), integer()}.
parse_request(Text) ->
    [Kind, Id] = string:lexemes(Text, " "),
    {list_to_atom(Kind), list_to_integer(Id)}.
