%% SPDX-License-Identifier: Apache-2.0
%% Plays the supervisor's end of sd_notify: a datagram socket whose messages are printed, a line
%% each, with the milliseconds since the first one. argv: the socket's path.
-module(scenario_notify).
-export([main/0]).

main() ->
    [Path] = init:get_plain_arguments(),
    {ok, Socket} = socket:open(local, dgram, default),
    ok = socket:bind(Socket, #{family => local, path => Path}),
    loop(Socket, undefined).

loop(Socket, First) ->
    {ok, Bytes} = socket:recv(Socket),
    Now = erlang:monotonic_time(millisecond),
    Start =
        case First of
            undefined -> Now;
            _ -> First
        end,
    [io:format("~b ~ts~n", [Now - Start, Line]) || Line <- string:split(Bytes, "\n", all)],
    loop(Socket, Start).
