%% SPDX-License-Identifier: Apache-2.0
%% @doc What a sampler is asking, and whom. There is a fixed number of askers ({@link kprof_asker}).
%% One of them has the batch, which is many processes one after the other. Where it stands at the
%% same process for 10 ms, that process is left to it, and another asker gets the others whose
%% answers have not come. A process that is known to be slow is asked
%% alone. After 50 ms a process counts as not answering. It is not asked again before it has
%% answered, and its asker waits with it; two askers are always left for the others.
%%
%% Times are in native units and are given by the caller, who owns the askers and their answers.
-module(kprof_questions).

-export([start_link/0, start_link/1, processes/1, has_batch/1, can_ask/1]).
-export([is_asking/1, is_asked/2]).
-export([ask/4, alone/4, answered/4, look/2]).

-export_type([questions/0, silent/0]).

-define(ASKERS, 32).
-define(SPARE, 2).
-define(STALL_MS, 10).
-define(DEADLINE_MS, 50).

-record(asked, {
    asker :: kprof_asker:asker(),
    job :: kprof_asker:job(),
    % that have not been answered, and are not asked again by another
    items :: [kprof_asker:item()],
    % of those that it was given
    done = 0 :: non_neg_integer(),
    since :: integer(),
    % where it stood and since when
    position = 0 :: non_neg_integer(),
    stands :: integer(),
    % the deadline has passed
    silent = false :: boolean()
}).
-record(q, {
    free :: [kprof_asker:asker()],
    processes :: [pid()],
    batch = none :: none | reference(),
    asked = #{} :: #{reference() => #asked{}},
    % of those that are asked alone, or at which an asker stands
    alone = #{} :: #{pid() => reference()}
}).
-opaque questions() :: #q{}.
-type silent() :: {kprof_asker:job(), kprof_asker:item()}.

%% @doc Starts the askers.
-spec start_link() -> questions().
start_link() ->
    start_link(?ASKERS).

%% @doc Starts so many.
-spec start_link(pos_integer()) -> questions().
start_link(Count) ->
    Positions = atomics:new(Count, []),
    Askers = [kprof_asker:start_link(Positions, N) || N <- lists:seq(1, Count)],
    #q{free = Askers, processes = [kprof_asker:pid(Asker) || Asker <- Askers]}.

%% @doc The askers.
-spec processes(questions()) -> [pid()].
processes(#q{processes = Pids}) ->
    Pids.

%% @doc Whether a batch is being asked.
-spec has_batch(questions()) -> boolean().
has_batch(#q{batch = Batch}) ->
    Batch =/= none.

%% @doc Whether there is an asker for a batch.
-spec can_ask(questions()) -> boolean().
can_ask(#q{free = Free}) ->
    Free =/= [].

%% @doc Whether anybody has not answered yet.
-spec is_asking(questions()) -> boolean().
is_asking(#q{asked = Asked}) ->
    map_size(Asked) > 0.

%% @doc Whether a process has been asked and has not answered yet. Those of the batch do not count.
-spec is_asked(pid(), questions()) -> boolean().
is_asked(Pid, #q{alone = Alone}) ->
    is_map_key(Pid, Alone).

%% @doc Asks these one after the other. There must be no batch.
-spec ask(kprof_asker:job(), [kprof_asker:item()], integer(), questions()) -> questions().
ask(Job, Items, Now, #q{batch = none} = Q) ->
    {Ref, Asked} = give(Job, Items, Now, Q),
    Asked#q{batch = Ref}.

give(Job, Items, Now, #q{free = [Asker | Free], asked = Asked} = Q) ->
    Ref = make_ref(),
    ok = kprof_asker:ask(Job, Items, Ref, Asker),
    One = #asked{asker = Asker, job = Job, items = Items, since = Now, stands = Now},
    {Ref, Q#q{free = Free, asked = Asked#{Ref => One}}}.

%% @doc Asks one alone, if there is an asker for it.
-spec alone(kprof_asker:job(), kprof_asker:item(), integer(), questions()) ->
    {ok, questions()} | no.
alone(Job, Item, Now, #q{free = Free, alone = Alone} = Q0) when length(Free) > ?SPARE ->
    {Ref, Q} = give(Job, [Item], Now, Q0),
    {ok, Q#q{alone = Alone#{pid(Item) => Ref}}};
alone(_, _, _, _) ->
    no.

%% @doc An asker has answers, and so many are still to come. Tells what was asked, when, and the
%% answers that count: those of who is asked again do not. Whether they came late is told, too.
-spec answered(reference(), [kprof_asker:answer()], non_neg_integer(), questions()) ->
    {kprof_asker:job(), Since :: integer(), [kprof_asker:answer()], Late :: boolean(), questions()}
    | none.
answered(Ref, Answers, Left, #q{asked = Asked} = Q0) ->
    case Asked of
        #{Ref := #asked{job = Job, items = Items, since = Since, silent = Silent} = One} ->
            {Good, Open} = matched(Answers, Items),
            Q = Q0#q{alone = not_alone(Good, Q0#q.alone)},
            {Job, Since, Good, Silent,
                came_back(Left, Ref, One#asked{items = Open}, length(Answers), Q)};
        _ ->
            none
    end.

%% The answers that are wanted, and what is still open. As a rule that is what comes next.
matched(Answers, Items) ->
    case behind(Answers, Items) of
        {ok, Open} ->
            {Answers, Open};
        no ->
            Answered = maps:from_list([{element(1, A), A} || A <- Answers]),
            {Done, Open} = lists:partition(fun(I) -> is_map_key(pid(I), Answered) end, Items),
            {[maps:get(pid(Item), Answered) || Item <- Done], Open}
    end.

behind([], Items) ->
    {ok, Items};
behind([Answer | Answers], [Item | Items]) ->
    case pid(Item) =:= element(1, Answer) of
        true -> behind(Answers, Items);
        false -> no
    end;
behind(_, []) ->
    no.

not_alone(_, Alone) when map_size(Alone) =:= 0 -> Alone;
not_alone(Answers, Alone) -> maps:without([element(1, A) || A <- Answers], Alone).

came_back(0, Ref, #asked{asker = Asker}, _, #q{batch = Batch, asked = Asked, free = Free} = Q) ->
    Q#q{
        free = [Asker | Free],
        batch =
            case Batch of
                Ref -> none;
                _ -> Batch
            end,
        asked = maps:remove(Ref, Asked)
    };
came_back(_, Ref, #asked{done = Done} = One, Answers, Q) ->
    put_asked(Ref, One#asked{done = Done + Answers}, Q).

%% @doc To be called every some milliseconds: those that have not answered in time, each told once,
%% and those that are not asked for want of askers.
-spec look(integer(), questions()) -> {[silent()], [silent()], questions()}.
look(Now, #q{batch = none} = Q) ->
    {Silent, Looked} = deadlines(Now, Q),
    {Silent, [], Looked};
look(Now, #q{batch = Ref, asked = Asked} = Q0) ->
    One = #asked{asker = Asker} = maps:get(Ref, Asked),
    {Left, Q} =
        case kprof_asker:position(Asker) of
            N when N =/= One#asked.position ->
                {[], put_asked(Ref, One#asked{position = N, stands = Now}, Q0)};
            N ->
                case passed(?STALL_MS, One#asked.stands, Now) of
                    true -> divide(Ref, N, One, Now, Q0);
                    false -> {[], Q0}
                end
        end,
    {Silent, Looked} = deadlines(Now, Q),
    {Silent, Left, Looked}.

%% It stands at that item. (At 0 it has not even begun, as its scheduler is held up: none is to
%% blame.)
divide(Ref, N, #asked{job = Job, items = Items, done = Done} = One, Now, #q{alone = Alone} = Q0) ->
    {Stuck, Others} =
        case lists:split(max(0, N - Done - 1), Items) of
            {Before, [Item | Behind]} when N > Done -> {[Item], Before ++ Behind};
            {_, _} -> {[], Items}
        end,
    Q = put_asked(Ref, One#asked{items = Stuck, since = One#asked.stands}, Q0#q{
        batch = none,
        alone = maps:merge(Alone, maps:from_list([{pid(Item), Ref} || Item <- Stuck]))
    }),
    case Others of
        [] -> {[], Q};
        _ when Q#q.free =:= [] -> {[{Job, Item} || Item <- Others], Q};
        _ -> {[], ask(Job, Others, Now, Q)}
    end.

put_asked(Ref, One, #q{asked = Asked} = Q) ->
    Q#q{asked = Asked#{Ref := One}}.

deadlines(Now, #q{asked = Asked, alone = Alone} = Q) ->
    lists:foldl(
        fun(Ref, {Silent, Q1}) ->
            case Asked of
                #{Ref := #asked{silent = false, job = Job, items = [Item], since = Since} = One} ->
                    case passed(?DEADLINE_MS, Since, Now) of
                        true ->
                            {[{Job, Item} | Silent], put_asked(Ref, One#asked{silent = true}, Q1)};
                        false ->
                            {Silent, Q1}
                    end;
                _ ->
                    {Silent, Q1}
            end
        end,
        {[], Q},
        maps:values(Alone)
    ).

passed(Ms, Since, Now) ->
    Now - Since >= erlang:convert_time_unit(Ms, millisecond, native).

pid({Pid, _, _}) -> Pid;
pid(Pid) -> Pid.
