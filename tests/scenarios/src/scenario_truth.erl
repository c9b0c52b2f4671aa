%% SPDX-License-Identifier: Apache-2.0
%% The truth about requests, written down by the application itself: every tier's body says when it
%% is entered and left, in the process that runs it, and whose child it is, which only who wrote the
%% application knows. Nothing here asks kprof, tokens or traces.
%%
%% A context, {Request, Span, Last}, says what a process works for: it is handed on by hand in every
%% message (ctx/0) and taken up with under/2. Last is when something of the request last happened in
%% the sender: from then on the receiver's first span counts as waiting.
-module(scenario_truth).

-export([
    start/0,
    clear/0,
    request/2,
    begins/1,
    ends/1,
    span/2,
    tail/2,
    ctx/0,
    under/2,
    spawn/1, spawn/2,
    died/2
]).
-export([rows/0, paths/0, spans/0, pids/0, open_at/1, nobody/0, switches/0]).

-export_type([context/0]).

-type id() :: pos_integer().
-type context() :: none | {Request :: id(), Span :: id() | top, Last :: integer()}.

-record(request, {
    id :: id(),
    identity :: atom(),
    pid :: pid(),
    start :: integer(),
    stop :: integer() | undefined,
    outcome :: ok | error | exit | throw | undefined
}).
-record(span, {
    id :: id(),
    request :: id(),
    tier :: atom(),
    pid :: pid(),
    parent :: id() | top,
    start :: integer(),
    wait :: integer(),
    stop :: integer() | undefined,
    outcome :: ok | error | exit | throw | undefined
}).

-spec start() -> ok.
start() ->
    Self = self(),
    erlang:spawn(fun() ->
        [
            Tab = ets:new(Tab, [named_table, public, {keypos, 2}, {write_concurrency, true}])
         || Tab <- [truth_requests, truth_spans]
        ],
        truth_nobody = ets:new(truth_nobody, [named_table, public]),
        Self ! {self(), up},
        receive
            stop -> ok
        end
    end),
    receive
        {_, up} -> ok
    end,
    true = ets:insert(truth_nobody, {calls, 0}),
    ok.

%% Forgets all requests.
-spec clear() -> ok.
clear() ->
    lists:foreach(fun ets:delete_all_objects/1, [truth_requests, truth_spans]).

now_ns() -> erlang:monotonic_time(nanosecond).

%% --- requests ---

%% F is one request, from here to its end.
-spec request(atom(), fun(() -> Result)) -> Result.
request(Identity, F) ->
    begins(Identity),
    try F() of
        Result ->
            ends(ok),
            Result
    catch
        Class:Why:Stack ->
            ends(Class),
            erlang:raise(Class, Why, Stack)
    end.

-spec begins(atom()) -> ok.
begins(Identity) ->
    Id = erlang:unique_integer([positive]),
    Start = now_ns(),
    true = ets:insert(truth_requests, #request{
        id = Id, identity = Identity, pid = self(), start = Start
    }),
    put(truth, {Id, top, none}),
    put(truth_last, Start),
    ok.

%% The request that this process works for ends; another process may have begun it.
-spec ends(ok | error | exit | throw) -> ok.
ends(Outcome) ->
    Stop = now_ns(),
    {Id, top, _} = erase(truth),
    true = ets:update_element(truth_requests, Id, [
        {#request.stop, Stop}, {#request.outcome, Outcome}
    ]),
    ok.

%% --- spans ---

%% The body of a tier. A process that works for nobody is only counted: kprof must count it nowhere.
-spec span(atom(), fun(() -> Result)) -> Result.
span(Tier, F) ->
    Start = now_ns(),
    case get(truth) of
        undefined ->
            _ = ets:update_counter(truth_nobody, calls, 1),
            F();
        Before ->
            Tails = entered(Tier, Start, Before),
            try F() of
                Result ->
                    left(ok, Tails),
                    Result
            catch
                Class:Why:Stack ->
                    left(Class, Tails),
                    erlang:raise(Class, Why, Stack)
            end
    end.

%% The body of a tier that makes a tail call of another tier afterwards: it ends when that one does.
-spec tail(atom(), fun(() -> term())) -> ok.
tail(Tier, F) ->
    Start = now_ns(),
    Tails = entered(Tier, Start, get(truth)),
    try F() of
        _ ->
            put(truth_tails, Tails),
            ok
    catch
        Class:Why:Stack ->
            left(Class, Tails),
            erlang:raise(Class, Why, Stack)
    end.

%% Gives what ends with this span, itself first, each with what the process worked for before.
entered(Tier, Start, {Request, Parent, Sent} = Before) ->
    Id = erlang:unique_integer([positive]),
    Wait =
        case Sent of
            none -> 0;
            _ -> Start - Sent
        end,
    true = ets:insert(
        truth_spans,
        #span{
            id = Id,
            request = Request,
            tier = Tier,
            pid = self(),
            parent = Parent,
            start = Start,
            wait = Wait
        }
    ),
    put(truth, {Request, Id, none}),
    put(truth_last, Start),
    Tails =
        case erase(truth_tails) of
            undefined -> [];
            Others -> Others
        end,
    [{Id, Before} | Tails].

left(Outcome, Tails) ->
    Stop = now_ns(),
    [
        true = ets:update_element(truth_spans, Id, [
            {#span.stop, Stop}, {#span.outcome, Outcome}
        ])
     || {Id, _} <- Tails
    ],
    {_, {Request, Parent, _}} = lists:last(Tails),
    put(truth, {Request, Parent, none}),
    put(truth_last, Stop),
    ok.

%% --- from process to process ---

%% What this process works for, to be put into a message that it sends at once.
-spec ctx() -> context().
ctx() ->
    case get(truth) of
        undefined -> none;
        {Request, Span, _} -> {Request, Span, get(truth_last)}
    end.

%% F works for what a message brought.
-spec under(context(), fun(() -> Result)) -> Result.
under(none, F) ->
    erase(truth),
    F();
under(Context, F) ->
    put(truth, Context),
    put(truth_last, element(3, Context)),
    try
        F()
    after
        erase(truth)
    end.

%% A spawned process works for what its parent works for at that moment, and the spawn is something
%% that happened.
-spec spawn(fun(() -> term())) -> pid().
spawn(F) -> ?MODULE:spawn(fun erlang:spawn/1, F).

%% The same, by any function that spawns a process for a fun. Gives what that gives.
-spec spawn(fun((fun(() -> term())) -> Spawned), fun(() -> term())) -> Spawned.
spawn(How, F) ->
    {Request, Span, _} = get(truth),
    Now = now_ns(),
    Spawned = How(fun() -> under({Request, Span, Now}, F) end),
    put(truth_last, Now),
    Spawned.

%% A process was killed: what it had open ended then.
-spec died(pid(), integer()) -> ok.
died(Pid, At) ->
    [
        ets:insert(truth_spans, S#span{stop = At, outcome = exit})
     || S <- ets:tab2list(truth_spans), S#span.pid =:= Pid, S#span.stop =:= undefined
    ],
    [
        ets:insert(truth_requests, R#request{stop = At, outcome = exit})
     || R <- ets:tab2list(truth_requests), R#request.pid =:= Pid, R#request.stop =:= undefined
    ],
    ok.

%% Calls of tiers by processes that worked for nobody.
-spec nobody() -> non_neg_integer().
nobody() -> ets:lookup_element(truth_nobody, calls, 2).

%% How often the kernel took a processor from a thread of this node: what a measurement can be
%% disturbed by.
-spec switches() -> non_neg_integer().
switches() ->
    lists:sum([
        N
     || File <- filelib:wildcard("/proc/self/task/*/status"),
        N <- involuntary(file:read_file(File))
    ]).

involuntary({ok, Text}) ->
    {match, [N]} = re:run(Text, "nonvoluntary_ctxt_switches:\\s*(\\d+)", [
        {capture, all_but_first, list}
    ]),
    [list_to_integer(N)];
% the thread has ended
involuntary(_) ->
    [].

%% --- what kprof should say ---

%% One line a tier and identity:
%% identity|tier|calls|errors|async_calls|total_us|self_us|mean_us|wait_us|waiting_us, in the
%% statistics' own terms.
-spec rows() -> [string()].
rows() ->
    Spans = ets:tab2list(truth_spans),
    Sums = lists:foldl(
        fun(R, Acc) ->
            request_sums(R, [S || S <- Spans, S#span.request =:= R#request.id], Acc)
        end,
        #{},
        ets:tab2list(truth_requests)
    ),
    [
        lists:flatten(
            io_lib:format("~s|~s|~b|~b|~b|~.1f|~.1f|~.1f|~.1f|~.1f", [
                Identity,
                Tier,
                Calls,
                Errors,
                Async
                | [
                    Ns / 1000
                 || Ns <-
                        [Total, Self, Durations / Calls, Wait, Waiting]
                ]
            ])
        )
     || {{Identity, Tier}, [Calls, Errors, Async, Total, Self, Durations, Wait, Waiting]} <-
            lists:sort(maps:to_list(Sums))
    ].

request_sums(
    #request{identity = Identity, start = Start, stop = Stop, outcome = Outcome}, Spans, Acc
) ->
    Duration = Stop - Start,
    ById = maps:from_list([{S#span.id, S} || S <- Spans]),
    {Own, Waited} = own_times(Start, Stop, Spans),
    Waiting = once(Waited),
    lists:foldl(
        fun(#span{id = Id} = S, Sums) ->
            Times = {maps:get(Id, Own, 0), maps:get(Id, Waiting, 0)},
            add({Identity, S#span.tier}, span_values(S, Stop, Times, ById), Sums)
        end,
        add(
            {Identity, '_total'},
            [1, error_of(Outcome), 0, Duration, map_get(top, Own), Duration, 0]
                ++ [lists:sum(maps:values(Waiting))],
            Acc
        ),
        Spans
    ).

span_values(
    #span{start = Start, stop = Stop, outcome = Outcome, wait = Wait}, RequestStop, _, _
) when Stop > RequestStop ->
    [1, error_of(Outcome), 1, 0, 0, Stop - Start, Wait, 0];
span_values(
    #span{start = Start, stop = Stop, outcome = Outcome, wait = Wait} = S, _, {Self, Waiting}, ById
) ->
    Total =
        case inside_itself(S, S#span.parent, ById) of
            true -> 0;
            false -> Stop - Start
        end,
    [1, error_of(Outcome), 0, Total, Self, Stop - Start, Wait, Waiting].

%% What of each span, and of the request itself (top), is its own time, and how it waited for those
%% below it to begin: {From, Until, Id}. Spans that end after the request take nobody's time.
own_times(Start, Stop, Spans) ->
    InTime = lists:keysort(#span.start, [S || S <- Spans, S#span.stop =< Stop]),
    {Uncovered, _, Waited} = own(top, Start, Stop, InTime),
    lists:foldl(
        fun(#span{id = Id, start = From, stop = To}, {Own, Waits}) ->
            {Time, _, More} = own(Id, From, To, [C || C <- InTime, C#span.parent =:= Id]),
            {Own#{Id => Time}, More ++ Waits}
        end,
        {#{top => Uncovered}, Waited},
        InTime
    ).

own(Id, Start, Stop, Below) ->
    lists:foldl(
        fun(#span{start = Began, wait = Wait, parent = Parent} = S, {Own, Until, Waits}) ->
            Waited = Parent =:= Id andalso Wait > 0 andalso Began > Until andalso Began =< Stop,
            From = max(Until, case Waited of true -> Began - Wait; false -> Began end),
            To = min(S#span.stop, Stop),
            {
                Own - max(0, To - From),
                max(Until, To),
                [{Began, From, S#span.id} || Waited] ++ Waits
            }
        end,
        {Stop - Start, Start, []},
        Below
    ).

%% Each moment of waiting once: it is that of the span which begins first.
once(Waits) ->
    {Times, _} = lists:foldl(
        fun({Until, From, Id}, {Sums, Counted}) ->
            Fresh = lists:foldl(
                fun({A, B}, Left) ->
                    lists:append([
                        [{L, R} || {L, R} <- [{X, min(Y, A)}, {max(X, B), Y}], R > L]
                     || {X, Y} <- Left
                    ])
                end,
                [{From, Until}],
                Counted
            ),
            {Sums#{Id => lists:sum([R - L || {L, R} <- Fresh])}, Fresh ++ Counted}
        end,
        {#{}, []},
        lists:sort(Waits)
    ),
    Times.

add(Key, Values, Sums) ->
    maps:update_with(
        Key, fun(Old) -> lists:zipwith(fun erlang:'+'/2, Old, Values) end, Values, Sums
    ).

error_of(ok) -> 0;
error_of(_) -> 1.

%% Whether a call of the same tier is going on above it.
inside_itself(_, top, _) ->
    false;
inside_itself(S, Parent, ById) ->
    P = map_get(Parent, ById),
    P#span.tier =:= S#span.tier andalso P#span.stop >= S#span.start orelse
        inside_itself(S, P#span.parent, ById).

%% identity|path|calls: where in the tree the calls are, a recursion as one step.
-spec paths() -> [string()].
paths() ->
    Identities = maps:from_list([
        {R#request.id, R#request.identity}
     || R <- ets:tab2list(truth_requests)
    ]),
    Spans = ets:tab2list(truth_spans),
    ById = maps:from_list([{S#span.id, S} || S <- Spans]),
    Sums = lists:foldl(
        fun(S, Acc) -> add({map_get(S#span.request, Identities), path(S, ById)}, [1], Acc) end,
        #{},
        Spans
    ),
    [
        lists:flatten(io_lib:format("~s|~s|~b", [Identity, lists:join(" > ", Path), Calls]))
     || {{Identity, Path}, [Calls]} <- lists:sort(maps:to_list(Sums))
    ].

path(#span{tier = Tier, parent = top}, _) ->
    [atom_to_list(Tier)];
path(#span{tier = Tier, parent = Id}, ById) ->
    Above = path(map_get(Id, ById), ById),
    case lists:last(Above) =:= atom_to_list(Tier) of
        true -> Above;
        false -> Above ++ [atom_to_list(Tier)]
    end.

%% How many requests were going on at a time.
-spec open_at(integer()) -> non_neg_integer().
open_at(Time) ->
    length([
        R
     || R <- ets:tab2list(truth_requests), R#request.start < Time, R#request.stop > Time
    ]).

%% Every span, one line: identity|request|request_us|outcome|tier|parent's
%% tier|start_us|duration_us|outcome|wait_us, where request is its number among those of its
%% identity, 1 ..., and start_us is since its begin; in this order.
-spec spans() -> [string()].
spans() ->
    Requests = lists:keysort(#request.start, ets:tab2list(truth_requests)),
    lists:append([
        spans_of(N, R)
     || I <- lists:usort([R#request.identity || R <- Requests]),
        {N, R} <- numbered([R || R <- Requests, R#request.identity =:= I])
    ]).

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

spans_of(N, #request{
    id = Id, identity = Identity, start = Begin, stop = Stop, outcome = Outcome
}) ->
    Spans = lists:keysort(#span.start, [
        S
     || S <- ets:tab2list(truth_spans), S#span.request =:= Id
    ]),
    [
        lists:flatten(
            io_lib:format(
                "~s|~b|~.1f|~s|~s|~s|~.1f|~.1f|~s|~.1f",
                [
                    Identity,
                    N,
                    (Stop - Begin) / 1000,
                    ok_or_error(Outcome),
                    S#span.tier,
                    parent_tier(S, Spans),
                    (S#span.start - Begin) / 1000,
                    (S#span.stop - S#span.start) / 1000,
                    ok_or_error(S#span.outcome),
                    S#span.wait / 1000
                ]
            )
        )
     || S <- Spans
    ].

ok_or_error(ok) -> ok;
ok_or_error(_) -> error.

parent_tier(#span{parent = top}, _) -> "";
parent_tier(#span{parent = Id}, Spans) -> (lists:keyfind(Id, #span.id, Spans))#span.tier.

%% Every process that worked for a request.
-spec pids() -> [pid()].
pids() ->
    lists:usort(
        [R#request.pid || R <- ets:tab2list(truth_requests)] ++
            [S#span.pid || S <- ets:tab2list(truth_spans)]
    ).
