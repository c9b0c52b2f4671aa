%% SPDX-License-Identifier: Apache-2.0
%% Random plans in which labels are lent: more clients than there are workers, locks and worked-out
%% answers, whom the one before hands on what they wait for, under its label; and messages that wait
%% for long while their sender has begun its next request.
%%
%% What they say besides what model_plan's do:
%%   lenders                     [{Name, hand | holder | cache, Workers}]; hand without workers is a
%%                               lock
%%   {lend, Lender, Inside, Program}         waits for a worker, runs the program, gives the worker
%%                                           back; the lender runs Inside for both
%%   {ask, Program}                          in such a program: the worker runs it
%%   {cached, Lender, Key, Inside, Program}  a key's first one runs the program, the others wait for
%%                                           that
%%   taken, sent                 whether the stream tells the messages that processes take,
%%                               and those that they send
%%   {own, Program}                          a helper of the process' own runs the program
%%
%% A plan is of one of these kinds:
%%   evident   whoever is asked works in a tier
%%   handed    and so does a helper which waits in the lender instead of the one that began the
%%             request
%%   dark      some work without one: then nothing may tell whose their work is
-module(model_lending).

-export([random/2]).

-include("model.hrl").

-import(model_plan, [chance/1, pick/1, tier/0, class/0, server/1, some_time/0, spend/0]).

-define(LENDERS, [
    {hand1, hand, 1},
    {hand2, hand, 2},
    {hand3, hand, 3},
    {holder, holder, 2},
    {lock, hand, 0},
    {cache, cache, 0}
]).

%% @doc A plan of about `Requests' requests. Uses the process' random numbers.
-spec random(evident | handed | dark, pos_integer()) -> map().
random(Kind, Requests) ->
    put(kind, Kind),
    put(begins, pick([[apply], [entry], [apply, entry]])),
    model_plan:use_tiers(none),
    Taken = taken(),
    #{
        truth => causes,
        kind => Kind,
        lenders => ?LENDERS,
        clients => [
            {0, [{request, first, first, mark, apply, []}]} | scenes(1, Requests, 10 * ?MS)
        ],
        drops => [],
        gc => chance(30),
        sched => chance(30),
        none => false,
        quiet => chance(50),
        taken => Taken,
        sent => Taken andalso chance(75),
        disorder =>
            case Taken of
                true -> 0;
                false -> pick([0, 20000, ?DISORDER, ?DISORDER])
            end,
        batch =>
            case Taken of
                true -> native;
                false -> pick([1, 1, 7])
            end
    }.

taken() ->
    case os:getenv("KPROF_MODEL_TAKEN") of
        false -> chance(50);
        Text -> Text =:= "yes"
    end.

%% From none to six wait for each worker at a time.
scenes(Next, Most, _) when Next > Most -> [];
scenes(Next, Most, Start) ->
    {_, _, Workers} = Lender = pick(?LENDERS),
    Clients = max(1, Workers) * rand:uniform(7),
    Each = rand:uniform(6),
    Programs = [
        keep_alive(lists:seq(N, N + Each - 1), Lender)
     || N <- lists:seq(Next, Next + (Clients - 1) * Each, Each)
    ],
    Pause = pick([5, 30, 200]) * ?MS,
    [{Start + rand:uniform(2 * ?MS), P} || P <- Programs] ++
        scenes(
            Next + Clients * Each,
            Most,
            Start + Pause + Clients * Each * 2 * ?MS div max(1, Workers)
        ).

%% One request after the other, most of them right away.
keep_alive(Numbers, Lender) ->
    How = pick(get(begins)),
    lists:append([
        [{work, pick([500, 2000, rand:uniform(4 * ?MS)])}, {'catch', [request(N, How, Lender)], []}]
     || N <- Numbers
    ]).

request(N, How, Lender) ->
    put(budget, pick([3, 6, 12, 20])),
    Shared =
        case chance(85) of
            true -> lends(Lender, N);
            false -> []
        end,
    Work =
        body(0, 2) ++
            case {get(kind), chance(60)} of
                {evident, _} -> within(40, Shared);
                {handed, true} -> within(40, [{own, [{tier, tier(), body(1, 1) ++ Shared}]}]);
                {dark, true} -> within(40, [{own, served(body(1, 1) ++ Shared)}]);
                _ -> within(40, Shared)
            end ++ body(0, 2),
    {request, N, list_to_atom("r" ++ integer_to_list(N)), mark, How,
        Work ++ [{raise, class()} || chance(3)]}.

within(Percent, Program) ->
    case Program =/= [] andalso chance(Percent) of
        true -> [{tier, tier(), body(1, 1) ++ Program ++ body(1, 1)}];
        false -> Program
    end.

lends({Name, cache, _}, N) ->
    [{cached, Name, N rem 7 + N div 40 * 7, inside(), [{work, some_time()} | body(2, 2)]}];
lends({Name, holder, _}, _) ->
    [{lend, Name, [], used(true)}];
lends({Name, hand, Workers}, _) ->
    [{lend, Name, inside(), used(Workers > 0)}].

%% What the lender does itself, for either message.
inside() -> [{tier, tier(), [{work, rand:uniform(20000)}]} || chance(20)].

used(Asks) ->
    lists:append([
        body(2, 1) ++ [{ask, served([{work, some_time()} | body(3, 2)])} || Asks]
     || _ <- lists:seq(1, rand:uniform(3))
    ]).

%% What a process does that is asked.
served(Body) ->
    case get(kind) =/= dark orelse chance(50) of
        true -> [{work, rand:uniform(3000)} || chance(30)] ++ [{tier, tier(), Body}];
        false -> Body
    end.

body(Level, Deep) ->
    lists:append([op(Level, Deep) || _ <- lists:seq(1, pick([0, 0, 1, 2]))]).

op(_, 0) ->
    [{work, some_time()}];
op(Level, Deep) ->
    case spend() of
        true -> op(rand:uniform(100), Level, Deep - 1);
        false -> [{work, some_time()}]
    end.

op(R, L, D) when R =< 30 -> [{tier, tier(), body(L, D)}];
op(R, L, D) when R =< 50, L < 4 ->
    {S, Its} = server(L),
    [{call, S, served(body(Its, D))}];
op(R, L, _) when R =< 62, L < 4 ->
    {S, _} = server(L),
    [{cast, S, served([{work, pick([some_time(), rand:uniform(20 * ?MS)])}])}];
op(R, L, D) when R =< 66, L < 4 ->
    [
        {gather, [
            {
                case chance(60) of
                    true -> pick([p1, p2, p3]);
                    false -> spawn
                end,
                served(body(4, D))
            }
         || _ <- lists:seq(1, 1 + rand:uniform(3))
        ]}
    ];
op(R, L, D) when R =< 68 -> [{hire, served(body(L, D))}];
op(R, L, D) when R =< 71 ->
    [{spawn, pick([spawn, spawn_link, spawn_opt, monitor]), served(body(L, D))}];
op(R, L, D) when R =< 76 ->
    [{'catch', body(L, D) ++ [{tier, tier(), [{raise, class()}]}], body(L, D)}];
op(R, L, D) when R =< 80 -> [{helper, body(L, D)}];
op(R, _, _) when R =< 83 -> [send];
op(R, _, _) when R =< 86 -> [{gc, pick([gc_minor, gc_major]), rand:uniform(100000)}];
op(R, _, _) when R =< 89 -> [{off, rand:uniform(200000)}];
op(R, L, _) when R =< 91, L > 0 -> [serve || get(kind) =:= dark];
op(_, _, _) ->
    [{work, some_time()}].
