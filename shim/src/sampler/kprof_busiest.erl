%% SPDX-License-Identifier: Apache-2.0
%% @doc Which processes of a node are worth looking at: those whose reductions, memory, message
%% queue or binaries changed most since the scan before, and the largest where nothing changed.
%% In the first scan that is since they began.
%%
%% A scan goes through all processes in slices, as the caller has time for them; it does not ask
%% processes by itself.
-module(kprof_busiest).

-export([new/4, begin_scan/1, is_scanning/1, slice/1, measured/2, silent/2, best/1, end_scan/1]).

-export_type([busiest/0, by/0]).

-define(SLICE, 200).
%% Processes whose values are remembered from one scan to the next, in some 20 MB; those of a larger
%% node beyond count with all that they have.
-define(MOST_KNOWN, 250000).
%% Who has ended is forgotten once there are so many times as many as are there, and some more.
-define(STALE_TIMES, 2).
-define(STALE_MORE, 1000).
% more than anything changes: it does not answer, so it runs
-define(SILENT, 1 bsl 60).

-type by() :: reductions | memory | message_queue_len | binary.
%% memory: heap and stack, which are told without a signal to the process.

-record(b, {
    by :: by(),
    top :: pos_integer(),
    leader :: any | pid(),
    % never chosen: who looks
    own :: #{pid() => true},
    left = none :: none | kprof_processes:processes(),
    % what they had in the scan before. Most have that still, and nothing is written of them. Now
    % and then there is another table for what they have now, without those who have ended
    before :: ets:tid(),
    now :: ets:tid(),
    % how many are in that
    known = 0 :: non_neg_integer(),
    best = gb_sets:empty() :: gb_sets:set({non_neg_integer(), non_neg_integer(), pid()}),
    % who is below is none of them
    least = none :: none | {non_neg_integer(), non_neg_integer(), pid()}
}).
-opaque busiest() :: #b{}.

%% @doc The top so many processes by that, of all or of those with this group leader.
-spec new(by(), pos_integer(), any | pid(), [pid()]) -> busiest().
new(By, Top, Leader, Own) ->
    Table = table(),
    #b{
        by = By,
        top = Top,
        leader = Leader,
        own = maps:from_keys(Own, true),
        before = Table,
        now = Table
    }.

table() ->
    ets:new(?MODULE, [set, private]).

%% @doc Begins a scan.
-spec begin_scan(busiest()) -> busiest().
begin_scan(#b{known = Known} = B0) ->
    B = B0#b{left = kprof_processes:all(), best = gb_sets:empty(), least = none},
    case Known > ?STALE_TIMES * erlang:system_info(process_count) + ?STALE_MORE of
        true -> B#b{now = table(), known = 0};
        false -> B
    end.

%% @doc Whether one goes on.
-spec is_scanning(busiest()) -> boolean().
is_scanning(#b{left = Left}) ->
    Left =/= none.

%% @doc The next processes to ask, and for what; none: all have been asked.
-spec slice(busiest()) -> {none | {kprof_asker:job(), [pid()]}, busiest()}.
slice(#b{left = Left, own = Own, by = By, leader = Leader} = B) ->
    case kprof_processes:take(?SLICE, Left) of
        {[], _} ->
            {none, B};
        {Pids, Rest} ->
            Others = [P || P <- Pids, not is_map_key(P, Own)],
            {{{measure, By, Leader}, Others}, B#b{left = Rest}}
    end.

%% @doc What the processes of a slice answered.
-spec measured([kprof_asker:answer()], busiest()) -> busiest().
measured(Answers, B) ->
    lists:foldl(
        fun
            ({Pid, {Value}}, B1) -> consider(Pid, Value, B1);
            (_, B1) -> B1
        end,
        B,
        Answers
    ).

consider(Pid, Value, #b{before = Before, now = Now, known = Known} = B) ->
    case ets:lookup(Before, Pid) of
        [{_, Value}] when Now =:= Before ->
            rank({0, Value, Pid}, B);
        [{_, Was}] when Now =:= Before ->
            true = ets:insert(Now, {Pid, Value}),
            rank({abs(Value - Was), Value, Pid}, B);
        Found ->
            Was = proplists:get_value(Pid, Found, 0),
            New = Known < ?MOST_KNOWN andalso ets:insert(Now, {Pid, Value}),
            rank({abs(Value - Was), Value, Pid}, B#b{known = Known + length([1 || New])})
    end.

%% Many are alike: who is no more than the least changes nothing.
rank({Change, Value, _}, #b{least = {Least, Size, _}} = B) when
    Change < Least; Change =:= Least, Value =< Size
->
    B;
rank(Ranked, #b{top = Top, best = Before} = B) ->
    Best = gb_sets:add_element(Ranked, Before),
    case gb_sets:size(Best) > Top of
        true ->
            {_, Others} = gb_sets:take_smallest(Best),
            B#b{best = Others, least = gb_sets:smallest(Others)};
        false ->
            B#b{best = Best}
    end.

%% @doc A process has not answered. By reductions it counts as the busiest.
-spec silent(pid(), busiest()) -> busiest().
silent(Pid, #b{by = reductions, leader = any} = B) -> rank({?SILENT, 0, Pid}, B);
silent(_, B) -> B.

%% @doc The best of those that this scan has seen so far, or that the last one saw, each once: who
%% did not answer in time may have answered after that, and is there twice.
-spec best(busiest()) -> [pid()].
best(#b{best = Best}) ->
    lists:uniq([Pid || {_, _, Pid} <- gb_sets:to_list(Best)]).

%% @doc All have been asked, or the scan is given up.
-spec end_scan(busiest()) -> busiest().
end_scan(#b{before = Before, now = Now} = B) ->
    _ = Before =/= Now andalso ets:delete(Before),
    B#b{left = none, before = Now}.
