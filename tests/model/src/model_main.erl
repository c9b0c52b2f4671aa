%% SPDX-License-Identifier: Apache-2.0
%% The model test: random captures through the built collector, two at a time, until enough requests
%% were compared.
-module(model_main).

-export([main/1]).

-include("model.hrl").

% messages
-define(SHOWN, 100).
% of a capture: the database keeps apart 1000 identities
-define(REQUESTS, 900).
% of one in which labels are lent: the fewer, the more buckets have nothing that is unclear
-define(LENDING, 300).
%% With six waiters and queued casts 65 to 80 % are complete, and 2 to 8 % of these have others'
%% calls, in buckets that say so. Who goes by labels alone has 30 %.

% percent at least of the requests
-define(COMPLETE, 50).
% in a thousand complete ones at most
-define(WRONG, 150).
% percent at least of the complete ones whose calls messages have brought
-define(MEASURED, 50).
-define(FEATURES, [drops, none, gc, lost, wait, paths]).

main([Folder]) ->
    Seed = number("KPROF_MODEL_SEED", erlang:phash2({os:system_time(), os:getpid()})),
    Wanted = number("KPROF_MODEL_REQUESTS", 21000),
    io:format("seed ~b~n", [Seed]),
    Captures = lists:seq(1, (Wanted + ?REQUESTS - 1) div ?REQUESTS),
    Start = erlang:monotonic_time(millisecond),
    Results = parallel(
        fun(N) -> capture(Seed, N, Folder) end, Captures, erlang:system_info(schedulers_online)
    ),
    Sum = fun(Key) -> lists:sum([maps:get(Key, Sums, 0) || {_, Sums} <- Results]) end,
    io:format(
        "~b captures, ~b requests, ~b messages; ~b identities compared; "
        "with calls without values ~b requests complete, ~b not; with lent labels ~b complete, ~b "
        "of them unclear; ~.1f s~n",
        [
            length(Results),
            Sum(requests),
            Sum(messages),
            Sum(rows),
            Sum(whole),
            Sum(doubted),
            Sum(complete),
            Sum(unclear),
            (erlang:monotonic_time(millisecond) - Start) / 1000
        ]
    ),
    Evident = [maps:get(evident, Sums) || {_, #{evident := _} = Sums} <- Results],
    Most = evident(
        lists:sum([E || {E, _, _} <- Evident]),
        lists:sum([C || {_, C, _} <- Evident]),
        lists:sum([W || {_, _, W} <- Evident])
    ),
    Measured = [M || {_, #{measured := M}} <- Results],
    Exact = measured(lists:sum([I || {I, _} <- Measured]), lists:sum([S || {_, S} <- Measured])),
    case [Bad || {{_, [_ | _]} = Bad, _} <- Results] of
        [] when Most, Exact ->
            ok = file:write_file(Folder ++ "/passed", ""),
            halt(0);
        [] ->
            halt(1);
        Bad ->
            io:format("~b captures differ; KPROF_MODEL_SEED=~b makes them again~n", [
                length(Bad), Seed
            ]),
            [
                io:format("  ~ts: ~ts~n", [filename:basename(Base), L])
             || {Base, Lines} <- Bad, L <- lists:sublist(Lines, 4)
            ],
            lists:foreach(fun explain/1, lists:sublist(Bad, number("KPROF_MODEL_EXPLAIN", 1))),
            halt(1)
    end.

%% Where whoever is asked works in a tier: whether enough requests are complete, and few of them
%% have others' calls among those that ended in time.
evident(Made, Complete, Wrong) ->
    io:format(
        "whoever is asked works in a tier: ~b of ~b requests complete, ~b of them with others' "
        "calls~n",
        [Complete, Made, Wrong]
    ),
    Complete * 100 >= Made * ?COMPLETE andalso Wrong * 1000 =< Complete * ?WRONG.

%% Whether of enough requests all waiting is measured that can be, to the nanosecond.
measured(Exact, Some) ->
    io:format("messages are told sent and taken: of ~b of ~b requests all waiting is measured~n", [
        Exact, Some
    ]),
    Exact * 100 >= Some * ?MEASURED.

number(Name, Otherwise) ->
    case os:getenv(Name) of
        false -> Otherwise;
        Text -> list_to_integer(Text)
    end.

%% Some at a time. One that crashes ends the run.
parallel(Fun, Items, Most) ->
    {First, Rest} = lists:split(min(Most, length(Items)), Items),
    [start(Fun, I) || I <- First],
    collect(Fun, Rest, length(Items)).

start(Fun, Item) -> spawn_monitor(fun() -> exit({result, Fun(Item)}) end).

collect(_, _, 0) ->
    [];
collect(Fun, Waiting, Left) ->
    receive
        {'DOWN', _, process, _, {result, Result}} ->
            Next =
                case Waiting of
                    [] ->
                        [];
                    [I | Rest] ->
                        start(Fun, I),
                        Rest
                end,
            [Result | collect(Fun, Next, Left - 1)];
        {'DOWN', _, process, _, Reason} ->
            error(Reason)
    end.

kinds() ->
    case os:getenv("KPROF_MODEL_KINDS") of
        false -> [exact, evident, exact, handed, exact, dark];
        Text -> [list_to_atom(K) || K <- string:lexemes(Text, ",")]
    end.

features() ->
    case os:getenv("KPROF_MODEL_FEATURES") of
        false -> ?FEATURES;
        Text -> [list_to_atom(F) || F <- string:lexemes(Text, ",")]
    end.

%% The differences of capture N, and what was compared.
capture(Seed, N, Folder) ->
    rand:seed(exsss, Seed * 1000 + N),
    Plan =
        case lists:nth(N rem length(kinds()) + 1, kinds()) of
            exact -> model_plan:random(?REQUESTS, features());
            Kind -> model_lending:random(Kind, number("KPROF_MODEL_LENDING", ?LENDING))
        end,
    Base = Folder ++ "/" ++ integer_to_list(Seed) ++ "-" ++ integer_to_list(N),
    {Lines, Sums} = model_check:plan(Plan, Base, features()),
    case Lines of
        [] ->
            [file:delete(Base ++ Ending) || Ending <- [".cap", ".db"]],
            ok;
        _ ->
            file:write_file(Base ++ ".plan", io_lib:format("~w.~n", [Plan]))
    end,
    {{Base, Lines}, Sums}.

%% What a difference is about: the name behind the last colon.
kind(Line) ->
    hd(string:lexemes(lists:last(string:split(unicode:characters_to_list(Line), ": ", all)), " ")).

%% Makes a failing capture small and says what is left.
explain({Base, Lines}) ->
    io:format("~n~s.cap: ~b differences~n", [Base, length(Lines)]),
    {ok, [Plan]} = file:consult(Base ++ ".plan"),
    Small = Base ++ "-small",
    Kind = kind(hd(Lines)),
    Fails = fun(P) ->
        {Left, _} = model_check:plan(P, Small, features()),
        lists:any(fun(L) -> kind(L) =:= Kind end, Left)
    end,
    Smallest = model_shrink:plan(Plan, Fails, number("KPROF_MODEL_SHRINK_MS", 60000)),
    {Left, #{requests := Requests}} = model_check:plan(Smallest, Small, features()),
    ok = file:write_file(Small ++ ".plan", io_lib:format("~w.~n", [Smallest])),
    io:format("made smaller, ~b requests: ~s.cap, .db and .plan~n", [Requests, Small]),
    [io:format("  ~ts~n", [L]) || L <- lists:sublist(Left, 10)],
    {_, Truth, Events} = model_sim:run(Smallest),
    {_, Items} = model_stream:make(Smallest, Events),
    show(lists:sublist(Items, ?SHOWN), Truth),
    [io:format("and ~b more~n", [length(Items) - ?SHOWN]) || length(Items) > ?SHOWN].

%% The messages of a capture: time, process, kind, what they say, and the request that they are
%% about.
show(Items, Requests) ->
    [
        case Item of
            {lost, Events} ->
                io:format("  ~b lost~n", [length(Events)]);
            #event{time = Time, proc = Proc, kind = Kind, term = Term, about = About} ->
                io:format(
                    "  ~14.6f ms ~6b ~-14s ~s ~s~n",
                    [
                        Time / ?MS,
                        Proc,
                        Kind,
                        lists:join(" ", [
                            said(X)
                         || X <- lists:sublist(tuple_to_list(Term), 4, tuple_size(Term) - 4)
                        ]),
                        [
                            ["of ", atom_to_list(Name)]
                         || Id <- About, #req{identity = Name} <- [maps:get(Id, Requests)]
                        ]
                    ]
                )
        end
     || Item <- Items
    ].

said({_, Label, Serial, From, _}) when is_pid(From) ->
    io_lib:format("[~w ~w from ~w]", [Label, Serial, From]);
said({M, F, A}) when is_atom(M), is_atom(F), is_integer(A) -> io_lib:format("~s:~s/~b", [M, F, A]);
said(Tuple) when is_tuple(Tuple) ->
    ["{", lists:join(", ", [said(X) || X <- tuple_to_list(Tuple)]), "}"];
said(Term) ->
    io_lib:format("~w", [Term]).
