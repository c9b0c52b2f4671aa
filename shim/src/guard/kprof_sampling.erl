%% SPDX-License-Identifier: Apache-2.0
%% @doc How many requests get a token: what the user asked for, and the level, the part of it that
%% the guard lets through.
%%
%% Asked for is `{one_in, N}', one request in N, or `{per_second, R}', R requests a second at most,
%% in bursts of a tenth of a second's worth; and weights. A request whose begin names an identity of
%% weight W, with `set_token' or a web server's helper, counts as W requests to the sampler: with
%% `{one_in, N}' one in N / W of them gets a token, and all when W is N or more; with `{per_second,
%% R}' each uses up a W-th of a token. Weight 0 is never sampled (but a header may force it);
%% without a weight it is 1. What names its request later, from the calls of tiers, or begins it by
%% an entry function, has weight 1.
%%
%% The level is 1 until tracing takes too much of the node: until the breaker trips, which halves
%% it, or more, so that what was measured then would be within the budget; or until thirty-two times
%% the budget is traced; or until a node at its limit traces as much as that of one scheduler for
%% each second of processor time that it gets, on a busy machine less than there is. The former is
%% known sooner, and asks for no proof. From then on, until it is 1 again, the traced bytes are held
%% within the budget: what is over it lowers the level, by as much, once the lowering before shows;
%% with room left, the level rises every 5 s, to eight times as much at most and no further than the
%% budget allows by what is measured.
%%
%% {@link put/2} writes the product of both where `set_token' reads it. The level goes for the
%% samples that a header forces, too, but one of them a second always may be: who looks for one
%% request gets it, and the breaker is there if even that is too much.
-module(kprof_sampling).

-export([
    new/1,
    ask/2,
    is_asked/1,
    one_in/1,
    put/2,
    takes/4,
    takes_all/1,
    weigh/1,
    describe/1,
    fields/1,
    lowered/1,
    log/3
]).
-export([tripped/3, follow/4, budget/0]).

-export_type([asked/0, sampling/0]).

% the level is told in millionths
-define(WHOLE, 1000000).
-define(MAX_ONE_IN, 1 bsl 30).
-define(MAX_PER_SECOND, 1000000).
% bytes a second and scheduler: some 1500 messages, a fortieth of its time
-define(BUDGET, 250000).
% the trace port is one
-define(BUDGET_SCHEDULERS, 4).
% times the budget
-define(TOO_MUCH, 32).
% bytes for a second of processor time: a quarter of it, with what unsampled calls take
-define(PER_CPU, ?TOO_MUCH * ?BUDGET).
-define(RAISE_MS, 5000).
-define(MAX_STEP, 8).
% what was on its way when it was lowered is counted by then
-define(SETTLE_MS, 300).
-define(WEIGHTS, kprof_weights).

-type asked() :: {one_in, pos_integer()} | {per_second, pos_integer()}.
-record(sampling, {
    asked :: asked(),
    level = ?WHOLE :: pos_integer(),
    % ms: when the level last changed, or was kept down
    since = 0 :: integer()
}).
-opaque sampling() :: #sampling{}.

%% @doc Whether this can be asked for.
-spec is_asked(term()) -> boolean().
is_asked({one_in, N}) -> is_integer(N) andalso N >= 1 andalso N =< ?MAX_ONE_IN;
is_asked({per_second, R}) -> is_integer(R) andalso R >= 1 andalso R =< ?MAX_PER_SECOND;
is_asked(_) -> false.

%% @doc As it was asked for.
-spec new(asked()) -> sampling().
new(Asked) ->
    #sampling{asked = Asked}.

%% @doc Something else is asked for; the level stays.
-spec ask(asked(), sampling()) -> sampling().
ask(Asked, S) ->
    S#sampling{asked = Asked}.

%% @doc Whether the guard holds it below what was asked for.
-spec lowered(sampling()) -> boolean().
lowered(#sampling{level = Level}) ->
    Level < ?WHOLE.

%% --- on the request path ---

%% @doc Whether request number N gets a token. `OneIn' is what {@link put/2} has set. Costs some ns,
%% and some hundred with weights.
-spec takes(kprof_slots:slots(), pos_integer(), integer(), kprof:identity()) -> boolean().
takes(Slots, OneIn, N, Identity) ->
    case kprof_slots:is_weighted(Slots) of
        false -> is_drawn(N - 1, OneIn) andalso is_due(kprof_slots:interval(Slots), 1, Slots);
        true -> takes_weighted(Slots, OneIn, N, weight(Identity))
    end.

%% @doc Whether every request gets one, as far as that is known now.
-spec takes_all(kprof_slots:slots()) -> boolean().
takes_all(Slots) ->
    kprof_slots:one_in(Slots) =:= 1 andalso kprof_slots:interval(Slots) =:= 0 andalso
        not kprof_slots:is_weighted(Slots).

takes_weighted(_, _, _, Weight) when Weight == 0 -> false;
takes_weighted(Slots, OneIn, N, Weight) ->
    is_drawn(N - 1, max(1, round(OneIn / Weight))) andalso
        is_due(kprof_slots:interval(Slots), Weight, Slots).

%% One in each run of OneIn numbers, each time at another place: requests that come in turns are
%% drawn alike.
is_drawn(_, 1) -> true;
is_drawn(N, OneIn) -> N rem OneIn =:= ((N div OneIn + 1) * 40503) rem OneIn.

is_due(0, _, _) ->
    true;
is_due(Interval, 1, Slots) ->
    kprof_slots:take_due(Slots, Interval, Interval);
is_due(Interval, Weight, Slots) ->
    kprof_slots:take_due(Slots, Interval, max(1, ceil(Interval / Weight))).

weight(Identity) ->
    try ets:lookup(?WEIGHTS, kprof_identify:text(Identity)) of
        [{_, Weight}] -> Weight;
        [] -> 1
    catch
        % the application is about to stop
        error:badarg -> 1
    end.

%% --- setting ---

%% @doc Installs the weights of a trace, of identities as their text. The table is the supervisor's.
-spec weigh(#{binary() => number()}) -> ok.
weigh(Weights) ->
    true = ets:delete_all_objects(?WEIGHTS),
    true = ets:insert(?WEIGHTS, maps:to_list(Weights)),
    case kprof_slots:find() of
        undefined -> ok;
        Slots -> kprof_slots:set_weighted(Slots, Weights =/= #{})
    end.

%% @doc Puts it in force.
-spec put(kprof_slots:slots(), sampling()) -> ok.
put(Slots, #sampling{level = Level} = S) ->
    ok = kprof_slots:lower_forced(Slots, Level / ?WHOLE),
    draw(Slots, S).

draw(Slots, #sampling{asked = {one_in, _}} = S) ->
    ok = kprof_slots:set_interval(Slots, 0),
    kprof_slots:set_one_in(Slots, one_in(S));
draw(Slots, #sampling{asked = {per_second, R}, level = Level}) ->
    ok = kprof_slots:set_interval(Slots, divided(kprof_slots:per_second() * ?WHOLE, R * Level)),
    kprof_slots:set_one_in(Slots, 1).

%% @doc One request in how many is in force; 1 with `{per_second, R}'.
-spec one_in(sampling()) -> pos_integer().
one_in(#sampling{asked = {one_in, N}, level = Level}) ->
    min(?MAX_ONE_IN, divided(N * ?WHOLE, Level));
one_in(#sampling{asked = {per_second, _}}) ->
    1.

divided(A, B) -> (A + B - 1) div B.

%% --- the level ---

%% @doc Bytes of trace messages a second that a node is let to make once they were too many.
-spec budget() -> pos_integer().
budget() ->
    ?BUDGET * min(?BUDGET_SCHEDULERS, erlang:system_info(schedulers_online)).

%% @doc The breaker has tripped, at so many bytes a second. `Now' is in ms.
-spec tripped(non_neg_integer(), integer(), sampling()) -> sampling().
tripped(Rate, Now, S) ->
    times(max(1 / 64, min(1 / 2, budget() / max(1, Rate))), Now, S).

%% @doc So many bytes a second were traced of late, and `PerCpu' for each second of processor time
%% if the node is at its limit. Lowers or raises the level as this module's head tells.
-spec follow(non_neg_integer(), non_neg_integer(), integer(), sampling()) -> sampling().
follow(Rate, PerCpu, Now, #sampling{level = ?WHOLE} = S) ->
    case Rate > budget() andalso (Rate > ?TOO_MUCH * budget() orelse PerCpu > ?PER_CPU) of
        true -> times(max(1 / 64, budget() / Rate), Now, S);
        false -> S
    end;
follow(Rate, _, Now, #sampling{since = Since} = S) ->
    Room = budget() / max(1, Rate),
    if
        Room < 1, Now - Since >= ?SETTLE_MS -> times(max(1 / 16, Room * 0.8), Now, S);
        Now - Since >= ?RAISE_MS, Room > 1.4 -> times(min(?MAX_STEP, Room * 0.8), Now, S);
        true -> S
    end.

times(Part, Now, #sampling{level = Level} = S) ->
    S#sampling{level = max(1, min(?WHOLE, round(Level * Part))), since = Now}.

%% --- telling ---

%% @doc What is in force, in words.
-spec describe(sampling()) -> string().
describe(#sampling{asked = {per_second, R}, level = Level}) when R * Level >= ?WHOLE ->
    integer_to_list(R * Level div ?WHOLE) ++ " requests a second at most";
describe(#sampling{asked = {per_second, R}, level = Level}) ->
    "one request in " ++ integer_to_list(divided(?WHOLE, R * Level)) ++ " seconds at most";
describe(S) ->
    case one_in(S) of
        1 -> "every request";
        N -> "one request in " ++ integer_to_list(N)
    end.

%% @doc Logs that the level begins or ceases to be lowered, at so many bytes a second: what lies
%% between is told to the collector.
-spec log(non_neg_integer(), Before :: sampling(), After :: sampling()) -> ok.
log(Rate, Before, After) ->
    case {lowered(Before), lowered(After)} of
        {false, true} ->
            logger:notice(
                "kprof: ~b kB of trace messages a second are too much for this node: sampling ~ts, "
                "and more again as the load falls",
                [Rate div 1000, describe(After)]
            );
        {true, false} ->
            logger:notice("kprof: the load has fallen: sampling ~ts again", [describe(After)]);
        _ ->
            ok
    end.

%% @doc What the collector is told.
-spec fields(sampling()) ->
    #{one_in := non_neg_integer(), per_second := non_neg_integer(), level_ppm := pos_integer()}.
fields(#sampling{asked = {one_in, N}, level = Level}) ->
    #{one_in => N, per_second => 0, level_ppm => Level};
fields(#sampling{asked = {per_second, R}, level = Level}) ->
    #{one_in => 0, per_second => R, level_ppm => Level}.
