%% SPDX-License-Identifier: Apache-2.0
%% What must be so of a plan in which labels are lent, whatever the collector makes of its stream:
%% the truth is the simulated node's alone, which knows what each call was for. No reader of the
%% stream is needed, nor any rule of the collector's.
%%
%% - A request is counted once.
%% - One that is called complete has exactly its own calls, with their times; or the verdict of its
%%   bucket is not ok.
%% - Where whoever is asked works in a tier, most are complete, and nearly all of these have their
%%   own calls whatever the verdict: model_main sums them up.
-module(model_property).

-export([lines/6, measured/3]).

-include("model.hrl").

% near a request's closing nobody knows what still came in time
-define(UNSURE, (100 * ?MS)).

%% @doc What is not so, as lines of text, and {Complete, Unclear, InTime}: how many requests are
%% complete; how many of these have not their own calls, where the verdict says so; and how many of
%% an evident plan have not even those that ended in time.
-spec lines(map(), map(), map(), map(), map(), [atom()]) ->
    {[iodata()], {non_neg_integer(), non_neg_integer(), non_neg_integer()}}.
lines(#{kind := Kind} = Plan, Spans, Requests, Rows, Verdicts, Features0) ->
    Features = [taken || maps:get(taken, Plan, false)] ++ Features0,
    ByRequest = maps:groups_from_list(fun(#span{req = Id}) -> Id end, maps:values(Spans)),
    Named = maps:from_list([
        {atom_to_binary(I), R}
     || #req{identity = I} = R <- maps:values(Requests)
    ]),
    Judged = [
        {maps:get(I, Verdicts), request(I, Named, ByRequest, Of, Features)}
     || {I, Of} <- lists:sort(maps:to_list(Rows))
    ],
    Wrong = [{Verdict, How, Line} || {Verdict, {How, Line}} <- Judged],
    Told = [Line || {<<"ok">>, _, Line} <- Wrong],
    InTime = [x || Kind =:= evident, {_, wrong, _} <- Wrong],
    {Told, {length(Judged), length(Wrong) - length(Told), length(InTime)}}.

%% @doc What is measured of the waiting of a request is never more than its messages have waited
%% that brought its calls, and none is where nothing tells when they were sent. Also how many of the
%% complete requests with such messages have exactly that, and how many these are: of those that
%% nobody can tell for sure which request they are for nothing is measured.
-spec measured(map(), map(), #{binary() => {non_neg_integer(), boolean()}}) ->
    {[iodata()], {non_neg_integer(), non_neg_integer()}}.
measured(#{taken := Taken, sent := Sent}, Requests, Measured) ->
    Waited = [
        {I, lists:sum(maps:values(W)), maps:get(I, Measured)}
     || #req{identity = Identity, waited = W} <- maps:values(Requests),
        I <- [atom_to_binary(Identity)],
        is_map_key(I, Measured)
    ],
    {
        [
            io_lib:format("~ts: has waited ~b ns, measured are ~b: waits", [I, Ns, Is])
         || {I, Ns, {Is, Ok}} <- Waited, (Ok andalso Is > Ns) orelse (Is > 0 andalso not Sent)
        ],
        case Taken andalso Sent of
            true ->
                Some = [Is =:= Ns || {_, Ns, {Is, _}} <- Waited, Ns > 0],
                {length([x || true <- Some]), length(Some)};
            false ->
                {0, 0}
        end
    };
measured(_, _, _) ->
    {[], {0, 0}}.

request(Identity, Named, ByRequest, Stored, Features) ->
    case Named of
        #{Identity := #req{stop = none}} ->
            {wrong, [Identity, ": is complete, and had no end"]};
        #{Identity := #req{id = Id, stop = End} = R} ->
            Closing = End + ?GRACE,
            Spans = maps:get(Id, ByRequest, []),
            Sure = [
                S
             || #span{start = Start, stop = Stop} = S <- Spans,
                Start < Closing - ?UNSURE,
                Stop < Closing - ?UNSURE
            ],
            case
                length([x || #span{start = Start} <- Spans, Start < Closing + ?UNSURE]) =:=
                    length(Sure)
            of
                true -> same(Identity, model_truth:request_rows(R, Sure), Stored, Features);
                false -> unsure
            end;
        _ ->
            {wrong, [Identity, ": nobody has begun it"]}
    end.

%% late: only what ran behind its end is not so.
same(Identity, Truth, Stored, Features) ->
    case model_check:same(Identity, own(Truth, Features), own(Stored, Features), Features) of
        [] ->
            right;
        [Line | _] ->
            case model_check:same(
                    Identity, in_time(Truth, Features), in_time(Stored, Features), Features
                ) of
                [] -> {late, Line};
                [Worse | _] -> {wrong, Worse}
            end
    end.

%% Calls, errors, and how long they took.
own(Rows, Features) ->
    tiers(
        fun({Of, Calls, Errors, Async, Total, _, Late, _, _, _, _, Min, Max}) ->
            {Of, Calls, Errors, Async, total(Total, Features), 0, Late, 0, 0, 0, 0, Min, Max}
        end,
        Rows
    ).

in_time(Rows, Features) ->
    maps:filter(
        fun(_, Numbers) -> element(2, Numbers) > 0 end,
        tiers(
            fun({_, Calls, _, Async, Total, _, _, _, _, _, _, _, _}) ->
                {0, Calls - Async, 0, 0, total(Total, Features), 0, 0, 0, 0, 0, 0, 0, 0}
            end,
            Rows
        )
    ).

%% Of calls below one of the same tier only the outermost counts. Which these are depends on what is
%% known of the processes between them: the truth takes those without calls for nobody's, and with
%% messages that are taken the collector does not.
total(Total, Features) ->
    case lists:member(taken, Features) of
        true -> 0;
        false -> Total
    end.

tiers(Fun, Rows) ->
    maps:from_list([{{tier, Tier}, Fun(Numbers)} || {{tier, Tier}, Numbers} <- maps:to_list(Rows)]).
