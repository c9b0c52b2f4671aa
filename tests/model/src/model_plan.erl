%% SPDX-License-Identifier: Apache-2.0
%% Random plans: what processes will do, as terms that can be printed, read back and made smaller.
%% Every number that matters stands in the plan, so that a smaller plan runs like the larger one
%% did.
%%
%% A plan is #{clients => [{Start, Program}], drops => [{Since, Count} | {unseen, Since}], gc,
%% sched, none, quiet, disorder, batch}. A program is a list of
%%   {work, Ns}                 time goes by
%%   {tier, T, Program}         calls tier T, which runs the program
%%   {tail, T, Program}         the same as the last thing that the calling tier does
%%   {helper, Program}          an untraced function runs the program
%%   {each, Program}            the same as helper, by a function that is the same at any depth
%%   {raise, Class}             an exception
%%   {'catch', Program, Then}   runs Then after an exception
%%   {call, Server, Program}    a gen_server call; the server runs the program
%%   {cast, Server, Program}    the same without an answer
%%   {gather, [{Where, Program}]} at the same time, in pool workers or (spawn) children, and waits
%%   for all
%%   {spawn, Kind, Program}     a child that nobody waits for
%%   bad_spawn                  a spawn that raises an error
%%   {hire, Program}            a child that is sent the program as a message
%%   {kill, Program, Ns}        a child that is killed after a while
%%   {timer, Ns, Program}       in a server: a timer fires later, under whatever token the server
%%                              then has
%%   serve                      in a server: takes the next message, if there is one, before it is
%%                              done with this one
%%   send                       a message to nobody of interest
%%   lose                       the token is gone (a call to another node)
%%   {finish, Outcome}          the request's end marker, here and now
%%   {gc, Kind, Ns}, {off, Ns}  a garbage collection; scheduled out for a while
%%   {request, Label, Identity, Named, How, Program}   How: apply (kprof:do_apply) | set (set_token,
%%                                                     clear_token)
%%                                                          | leave (ends elsewhere or never)
%%   {plain, Program}           the program without a token
-module(model_plan).

-export([random/2, tiers/0, entry/0, returns/1, servers/0]).
% of random plans
-export([use_tiers/1, chance/1, pick/1, tier/0, class/0, server/1, some_time/0, spend/0]).

-include("model.hrl").

-define(WHOLE, [a, b, c, d, e]).
-define(NONE, [n, m]).
%% Servers call only those of a higher level, and so never wait in a circle.
-define(SERVERS, [
    {s1, 1}, {s2, 1}, {s3, 2}, {s4, 2}, {s5, 3}, {s6, 3}, {p1, 4}, {p2, 4}, {p3, 4}
]).

tiers() -> ?WHOLE ++ ?NONE.

%% The tier that begins a request where no marker does.
entry() -> entry.

returns(T) ->
    case lists:member(T, ?NONE) of
        true -> none;
        false -> whole
    end.

servers() -> ?SERVERS.

%% @doc A plan of about `Requests' requests with these Features (drops | none | gc | lost). Uses the
%% process' random numbers.
-spec random(pos_integer(), [atom()]) -> map().
random(Requests, Features) ->
    put(features, Features),
    None = has(none) andalso chance(50),
    use_tiers(
        case None of
            true -> all;
            false -> none
        end
    ),
    %% a marker first: without one the collector takes a stream for somebody else's, in which calls
    %% alone are requests
    #{
        truth => labels,
        lenders => [],
        clients => [
            {0, [{request, first, first, mark, apply, []}]}
            | clients(Requests, Requests * 25 * ?MS, 1)
        ],
        drops =>
            case has(drops) andalso chance(50) of
                true ->
                    [
                        {rand:uniform(Requests * 25 * ?MS), geometric(12)}
                     || _ <- lists:seq(1, rand:uniform(6))
                    ] ++
                        [{unseen, rand:uniform(Requests * 25 * ?MS)} || _ <- lists:seq(1, 3)];
                false ->
                    []
            end,
        gc => has(gc) andalso chance(50),
        sched => has(gc) andalso chance(50),
        none => None,
        quiet => chance(50),
        disorder => pick([0, 20000, ?DISORDER, ?DISORDER]),
        batch => pick([1, 1, 7])
    }.

%% Which tiers there are: all, or none of those without return values.
use_tiers(all) -> put(tiers, tiers());
use_tiers(none) -> put(tiers, ?WHOLE).

%% Half of the clients make one request, the others one after the other (keep-alive). The last one
%% comes late, so that all others have been closed by then; a capture without it ends in the middle
%% of things.
clients(Most, Length, Next) when Next > Most ->
    [{Length + 10 * ?S, [request(Next)]} || chance(70)];
clients(Most, Length, Next) ->
    Count = min(Most - Next + 1, pick([1, 1, 1, 2, 5, 12])),
    Program = lists:flatmap(fun(N) -> item(N, Count) end, lists:seq(Next, Next + Count - 1)),
    [{10 * ?MS + rand:uniform(Length), Program} | clients(Most, Length, Next + Count)].

item(N, Count) ->
    Request = request(N),
    Before =
        case rand:uniform(12) of
            1 -> [{plain, body(0, 3)}];
            2 -> [{work, rand:uniform(2 * ?S)}];
            _ -> [{work, rand:uniform(20 * ?MS)}]
        end,
    %% a process that lives on has caught what its request raised
    Before ++
        [
            case Count > 1 orelse chance(50) of
                true -> {'catch', [Request], []};
                false -> Request
            end
        ].

request(N) ->
    put(budget, pick([5, 20, 40, 80])),
    How =
        case rand:uniform(20) of
            1 -> leave;
            2 -> set;
            3 -> set;
            _ -> apply
        end,
    Body = lists:append([walk() || chance(5)]) ++ body(0, 4),
    {request, label(N), list_to_atom("r" ++ integer_to_list(N)), pick([mark, mark, mark, call]),
        How,
        case {How, rand:uniform(4)} of
            % nobody ends it
            {leave, 1} ->
                Body;
            {leave, _} ->
                %% sometimes right behind an exception that was caught: then its death looks like
                %% the end, until the end marker comes
                Last =
                    case chance(70) of
                        true -> {tier, tier(), []};
                        false -> {'catch', [{tier, tier(), [{raise, class()}]}], []}
                    end,
                Body ++ [Last, finished_by({work, pick([1, 300, 1200]) * ?MS})];
            % ends inside a tier, which goes on, perhaps for longer than anybody waits
            {set, 2} ->
                Body ++
                    [
                        {tier, tier(), [
                            {finish, pick([ok, error])}, {work, pick([1, 1200]) * ?MS}
                        ]}
                    ];
            {_, 1} ->
                Body ++ [{raise, class()} || chance(40)];
            % two ends
            {apply, 2} ->
                Body ++
                    [
                        X
                     || chance(15), X <- [finished_by({work, some_time()}), {work, some_time()}]
                    ];
            _ ->
                Body
        end}.

%% A recursion by way of an untraced function: what it calls first in the second turn seems to have
%% been called by tail calls, in the first.
walk() ->
    case [T || T <- get(tiers), returns(T) =:= none] of
        [] ->
            [];
        None ->
            [
                {each, [
                    {tier, pick(None), [
                        {each, [
                            {tier, tier(), [{work, some_time()}]}
                         || _ <- lists:seq(1, rand:uniform(3))
                        ]},
                        {work, some_time()}
                    ]}
                ]}
            ]
    end.

%% A server that ends the request.
finished_by(Work) ->
    {S, L} = server(0),
    {cast, S, body(L, 2) ++ [Work, {finish, pick([ok, ok, error, exit])} | body(L, 2)]}.

%% Labels are any terms. Some are those of earlier requests.
label(N) ->
    case rand:uniform(16) of
        1 -> list_to_atom("label" ++ integer_to_list(N));
        2 -> {N, "of a tuple", [1.5, <<N:16>>]};
        3 -> <<"binary", N:32>>;
        4 -> N bsl 70;
        5 -> -N;
        6 -> [N, N + 1, 255];
        % see model_sim
        7 -> {reuse, rand:uniform(1 bsl 30)};
        _ -> N
    end.

%% What a process does at a level, as deep as this.
body(Level, Deep) ->
    lists:append([op(Level, Deep) || _ <- lists:seq(1, pick([0, 1, 2, 2, 3, 4]))]).

op(_, 0) ->
    [{work, some_time()}];
op(Level, Deep) ->
    case spend() of
        true -> op(rand:uniform(100), Level, Deep - 1);
        false -> [{work, some_time()}]
    end.

op(R, L, D) when R =< 30 -> [{tier, tier(), body(L, D)}];
op(R, L, D) when R =< 33 -> recursion(tier(), L, D);
% the same one many times
op(R, L, D) when R =< 36 ->
    T = tier(),
    [{tier, T, body(L, min(D, 1))} || _ <- lists:seq(1, rand:uniform(8))];
op(R, L, D) when R =< 40 -> [{tier, tier(), body(L, D) ++ [{tail, tier(), body(L, D)}]}];
op(R, L, D) when R =< 54, L < 4 ->
    {S, Its} = server(L),
    [{call, S, served(Its, D)}];
op(R, L, D) when R =< 58, L < 4 ->
    {S, Its} = server(L),
    [{cast, S, served(Its, D)}];
op(R, L, D) when R =< 62 ->
    [
        {gather, [
            {
                case L < 4 andalso chance(60) of
                    true -> pick([p1, p2, p3]);
                    false -> spawn
                end,
                body(4, D)
            }
         || _ <- lists:seq(1, 1 + rand:uniform(3))
        ]}
    ];
op(R, L, D) when R =< 63 -> [{hire, body(L, D)}];
op(R, L, D) when R =< 66 ->
    [{spawn, pick([spawn, spawn_link, spawn_opt, monitor]), outlive(body(L, D))}];
op(R, L, D) when R =< 67 ->
    [
        {kill, [{tier, tier(), [{tier, tier(), body(L, D)}, {work, 3 * ?MS}]}],
            rand:uniform(5 * ?MS)}
    ];
op(R, L, D) when R =< 74 ->
    [
        {'catch', body(L, D) ++ raising(L, D), pick([[], [], [{raise, class()}], body(L, D)])}
     || chance(90)
    ];
op(R, L, D) when R =< 77 -> [{helper, body(L, D)}];
op(R, L, D) when R =< 79, L > 0 ->
    [{timer, rand:uniform(pick([?MS, 50 * ?MS, 1500 * ?MS])), body(L, D)}];
% what comes back under its label is of whom? the sim goes by labels, as yet
op(R, L, _) when R =< 81, L > 0, false -> [serve];
op(R, _, _) when R =< 83 -> [send];
op(R, L, _) when R =< 84, L =:= 0 -> [lose || has(lost), chance(30)];
op(R, L, _) when R =< 85 -> [{raise, class()} || L =:= 0, chance(30)];
op(R, _, _) when R =< 89 -> [{gc, pick([gc_minor, gc_major]), rand:uniform(100000)}];
op(R, _, _) when R =< 92 -> [{off, rand:uniform(200000)}];
op(_, _, _) ->
    [{work, some_time()}].

served(L, D) -> lists:append([walk() || chance(2)]) ++ body(L, D).

recursion(T, L, D) ->
    % mutual, or direct
    U = pick([T, tier()]),
    [
        lists:foldl(
            fun(N, Inner) ->
                {tier,
                    case N rem 2 of
                        0 -> T;
                        1 -> U
                    end, body(L, min(D, 1)) ++ [Inner]}
            end,
            {tier, T, body(L, min(D, 1))},
            lists:seq(1, rand:uniform(5))
        )
    ].

%% An exception that comes through tiers and helpers, or not at all.
raising(L, D) ->
    case rand:uniform(5) of
        1 -> [{raise, class()}];
        5 -> [bad_spawn];
        2 -> [{tier, tier(), body(L, min(D, 1)) ++ [{raise, class()}]}];
        3 -> [{tier, tier(), [{helper, [{tier, tier(), [{raise, class()}]}]}]}];
        4 -> []
    end.

%% A child goes on after its parent; some longer than anybody waits for it.
outlive(Body) ->
    case rand:uniform(10) of
        1 -> Body ++ [{work, pick([900, 1200]) * ?MS}, {tier, tier(), [{work, ?MS}]}];
        2 -> [{tier, tier(), [{work, pick([30, 400, 1500]) * ?MS} | Body]}];
        3 -> [{work, pick([20, 300]) * ?MS} | Body];
        _ -> Body
    end.

spend() ->
    Left = get(budget),
    put(budget, Left - 1),
    Left > 0.

has(Feature) -> lists:member(Feature, get(features)).
chance(Percent) -> rand:uniform(100) =< Percent.
pick(List) -> lists:nth(rand:uniform(length(List)), List).
tier() -> pick(get(tiers)).
class() -> pick([error, exit, throw]).
server(Level) -> pick([S || {_, L} = S <- ?SERVERS, L > Level]).
geometric(Mean) -> 1 + trunc(-Mean * math:log(rand:uniform())).

%% From 1 µs to 1 ms, the short ones as often as the long ones.
some_time() -> trunc(1000 * math:pow(1000, rand:uniform())).
