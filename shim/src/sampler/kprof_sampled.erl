%% SPDX-License-Identifier: Apache-2.0
%% @doc The processes that a sampler looks at, in turn, and what it knows of each: its number, what
%% it last told of it, whether it is slow to answer.
-module(kprof_sampled).

-export([new/1, size/1, choose/2, without/2, described/3, undescribed/3, next/2, forget/2]).
-export([item/2, is_slow/3, slow/3, answer/3, number/2]).

-export_type([sampled/0]).

%% Dear items are asked for with every tenth stack.
-define(DEAR, 10).
%% s that who has not answered in time is asked alone
-define(SLOW_S, 60).

-record(p, {
    number :: kprof_stack_records:number_of(),
    described :: kprof_stack_records:described(),
    % what reductions are if it has done nothing since its last answer, which cost it one
    base = none :: none | non_neg_integer(),
    % as of its last sample
    reductions = none :: none | non_neg_integer(),
    minor = none :: none | non_neg_integer(),
    stack = none :: none | [mfa()],
    % of its token, as told last
    label = none :: none | kprof_stack_records:label(),
    asked = 0 :: non_neg_integer(),
    % native time
    slow_until = none :: none | integer()
}).
-record(w, {
    % whether tokens are asked for
    labels :: boolean(),
    % all that were told; those that are looked at are in the ring
    known = #{} :: #{pid() => #p{}},
    chosen = #{} :: #{pid() => true},
    ring = [] :: [pid()],
    % of the ring, those that are next
    left = [] :: [pid()],
    applications = kprof_described:new() :: kprof_described:applications()
}).
-opaque sampled() :: #w{}.

%% @doc None. `Labels': it is told of each which request's token it holds.
-spec new(boolean()) -> sampled().
new(Labels) ->
    #w{labels = Labels}.

%% @doc How many are looked at.
-spec size(sampled()) -> non_neg_integer().
size(#w{ring = Ring}) ->
    length(Ring).

%% @doc These are to be looked at from now on. Tells those that have to be described first.
-spec choose([pid()], sampled()) -> {[pid()], sampled()}.
choose(Pids, #w{known = Known, ring = Before, left = Left} = W) ->
    Chosen = maps:from_keys(Pids, true),
    {Ring, Strangers} = lists:partition(fun(P) -> is_map_key(P, Known) end, Pids),
    {Strangers, W#w{
        known = lists:foldl(fun rest/2, Known, [P || P <- Before, not is_map_key(P, Chosen)]),
        chosen = Chosen,
        ring = Ring,
        left = [P || P <- Left, is_map_key(P, Chosen)]
    }}.

%% One that may come again, and is to take little room meanwhile.
rest(Pid, Known) ->
    #{Pid := P} = Known,
    Known#{Pid := P#p{stack = none, base = none}}.

%% @doc Those that are looked at, but for these.
-spec without([pid()], sampled()) -> [pid()].
without(Pids, #w{ring = Ring}) ->
    Ring -- Pids.

%% @doc What the askers learned of processes: those are told, and looked at if they are still to
%% be. One that had been {@link undescribed/3} before is told anew.
-spec described([kprof_asker:answer()], sampled(), kprof_stack_records:records()) ->
    {sampled(), kprof_stack_records:records()}.
described(Answers, W, R) ->
    lists:foldl(
        fun
            ({_, gone}, Acc) ->
                Acc;
            ({Pid, Items}, {W1, R1}) ->
                {Described, Applications} = kprof_described:describe(Pid, Items, W1#w.applications),
                tell(Described, W1#w{applications = Applications}, R1)
        end,
        {W, R},
        Answers
    ).

%% @doc One did not answer.
-spec undescribed(pid(), sampled(), kprof_stack_records:records()) ->
    {sampled(), kprof_stack_records:records()}.
undescribed(Pid, #w{known = Known} = W, R) when is_map_key(Pid, Known) -> {W, R};
undescribed(Pid, W, R) -> tell(kprof_described:unknown(Pid), W, R).

tell({Pid, _, _, _} = Described, #w{known = Known, chosen = Chosen, ring = Ring} = W, R0) ->
    {Number, R} = kprof_stack_records:process(Described, R0),
    P =
        case Known of
            #{Pid := #p{slow_until = Slow}} ->
                #p{number = Number, described = Described, slow_until = Slow};
            _ ->
                #p{number = Number, described = Described}
        end,
    InRing = is_map_key(Pid, Known) orelse not is_map_key(Pid, Chosen),
    {
        W#w{
            known = Known#{Pid => P},
            ring =
                case InRing of
                    true -> Ring;
                    false -> [Pid | Ring]
                end
        },
        R
    }.

%% @doc The records have been begun anew: tells again those that are looked at.
-spec forget(sampled(), kprof_stack_records:records()) ->
    {sampled(), kprof_stack_records:records()}.
forget(#w{ring = Ring, known = Known} = W, R) ->
    Described = [(maps:get(Pid, Known))#p.described || Pid <- Ring],
    lists:foldl(
        fun(D, {W1, R1}) -> tell(D, W1, R1) end, {W#w{ring = [], known = #{}}, R}, Described
    ).

%% @doc The next so many; each comes once before one comes again.
-spec next(non_neg_integer(), sampled()) -> {[pid()], sampled()}.
next(N, #w{left = Left} = W) when length(Left) >= N ->
    {Pids, Rest} = lists:split(N, Left),
    {Pids, W#w{left = Rest}};
next(N, #w{left = Left, ring = Ring} = W) ->
    More = min(N - length(Left), length(Ring)),
    {Pids, Rest} = lists:split(More, Ring),
    {Left ++ others(Pids, Left), W#w{left = Rest}}.

others(Pids, []) ->
    Pids;
others(Pids, Left) ->
    Taken = maps:from_keys(Left, true),
    [P || P <- Pids, not is_map_key(P, Taken)].

%% @doc What an asker is to be given for it.
-spec item(pid(), sampled()) -> kprof_asker:item().
item(Pid, #w{known = Known, labels = Labels}) ->
    #p{base = Base, asked = Asked} = maps:get(Pid, Known),
    {Pid, Base, [dear || Asked rem ?DEAR =:= 0] ++ [sequential_trace_token || Labels]}.

%% @doc Whether it has not answered in time lately.
-spec is_slow(pid(), integer(), sampled()) -> boolean().
is_slow(Pid, Now, #w{known = Known}) ->
    case Known of
        #{Pid := #p{slow_until = Until}} when is_integer(Until) -> Now < Until;
        _ -> false
    end.

%% @doc It has not.
-spec slow(pid(), integer(), sampled()) -> sampled().
slow(Pid, Now, #w{known = Known} = W) ->
    case Known of
        #{Pid := P} ->
            Until = Now + erlang:convert_time_unit(?SLOW_S, second, native),
            W#w{known = Known#{Pid := P#p{slow_until = Until}}};
        _ ->
            W
    end.

%% @doc Its number, if it has been told.
-spec number(pid(), sampled()) -> {ok, kprof_stack_records:number_of()} | error.
number(Pid, #w{known = Known}) ->
    case Known of
        #{Pid := #p{number = N}} -> {ok, N};
        _ -> error
    end.

%% @doc What a look has seen goes to the records.
-spec answer(kprof_asker:answer(), sampled(), kprof_stack_records:records()) ->
    {sample | unchanged | gone, sampled(), kprof_stack_records:records()}.
answer(Answer, #w{known = Known} = W, R) ->
    Pid = element(1, Answer),
    case Known of
        #{Pid := P} -> answer(Answer, P, W, R);
        _ -> {gone, W, R}
    end.

answer({Pid, gone}, #p{number = N}, #w{known = Known, ring = Ring, left = Left} = W, R) ->
    {gone,
        W#w{
            known = maps:remove(Pid, Known),
            ring = lists:delete(Pid, Ring),
            left = lists:delete(Pid, Left)
        },
        kprof_stack_records:gone(N, R)};
%% without a stack there is nothing that it could be unchanged from: asked before all was forgotten
answer({_, unchanged, _}, #p{stack = none}, W, R) ->
    {gone, W, R};
answer({_, unchanged, Status}, #p{number = N}, W, R) ->
    {unchanged, W, kprof_stack_records:unchanged(N, Status, R)};
answer({Pid, Status, Stack, Values}, #p{number = N} = P, #w{known = Known} = W, R0) ->
    {Told, R1} =
        case P#p.stack of
            Stack -> {same, R0};
            _ -> kprof_stack_records:stack(Stack, R0)
        end,
    Label = maps:get(label, Values, P#p.label),
    R =
        case P#p.label of
            Label -> R1;
            _ -> kprof_stack_records:label(N, Label, R1)
        end,
    Reductions = maps:get(reductions, Values),
    {Changes, Minor} = collected(Values#{reductions := since(Reductions, P#p.reductions)}, P),
    After = P#p{
        base = Reductions + 1,
        reductions = Reductions,
        minor = Minor,
        stack = Stack,
        label = Label,
        asked = P#p.asked + 1
    },
    {sample, W#w{known = Known#{Pid := After}},
        kprof_stack_records:sample(N, Status, Told, Changes, R)}.

since(_, none) -> 0;
since(Now, Before) -> max(0, Now - Before).

%% The VM counts minor collections from the last major one.
collected(#{collected := {Minor, Old, Bin, OldBin}} = Values, #p{minor = Before}) ->
    Since =
        case Before of
            none -> 0;
            _ when Minor < Before -> Minor;
            _ -> Minor - Before
        end,
    {Values#{collected := {Since, Old, Bin, OldBin}}, Minor};
collected(Values, #p{minor = Before}) ->
    {Values, Before}.
