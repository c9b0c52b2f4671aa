%% SPDX-License-Identifier: Apache-2.0
%% Scenario 31: yaws, with this module as the appmod behind kprof_yaws.
-module(scenario_web_yaws).

-export([start/1, out/1]).

-spec start(map()) -> inet:port_number().
start(#{port := Port}) ->
    {ok, Root} = file:get_cwd(),
    ok = yaws:start_embedded(
        Root,
        [
            {port, Port},
            {listen, {127, 0, 0, 1}},
            {servername, "h"},
            {partial_post_size, 4096},
            {appmods, [{"/", kprof_yaws}]},
            {opaque, [{"kprof_appmod", "scenario_web_yaws"}]},
            {flags, [{access_log, false}, {auth_log, false}]}
        ],
        [{logdir, Root}],
        "scenario"
    ),
    Port.

%% A body that comes in parts is gathered in the state that yaws keeps for us.
-spec out(term()) -> term().
out(Arg) ->
    case {yaws_api:arg_clidata(Arg), gathered(yaws_api:arg_state(Arg))} of
        {{partial, Part}, Before} -> {get_more, cont, {gathered, <<Before/binary, Part/binary>>}};
        {Last, Before} when is_binary(Last) -> answer(Arg, <<Before/binary, Last/binary>>);
        {undefined, Before} -> answer(Arg, Before)
    end.

gathered({gathered, Part}) -> Part;
gathered(undefined) -> <<>>.

answer(Arg, Body) ->
    Req = yaws_api:arg_req(Arg),
    {abs_path, Path} = yaws_api:http_request_path(Req),
    case
        scenario_web:handle(
            atom_to_binary(yaws_api:http_request_method(Req), utf8), list_to_binary(Path), Body
        )
    of
        {pieces, Pieces} ->
            Yaws = self(),
            [First | Rest] = scenario_web:pieces(Pieces),
            _ = spawn(fun() ->
                [yaws_api:stream_chunk_deliver(Yaws, Piece()) || Piece <- Rest],
                yaws_api:stream_chunk_end(Yaws)
            end),
            {streamcontent, "text/plain", First()};
        {Status, Answer} ->
            [{status, Status}, {content, "text/plain", Answer}]
    end.
