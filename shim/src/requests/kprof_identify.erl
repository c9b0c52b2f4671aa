%% SPDX-License-Identifier: Apache-2.0
%% @doc Asks the identity function about one call, for tiers whose function could not be compiled:
%% in a short-lived process with limits on time and memory, never in the process of a request.
-module(kprof_identify).

-export([start/2, result/1, text/1]).

-define(TIME_MS, 200).
-define(HEAP_WORDS, 2000000).

%% @doc Starts the question; the caller gets the process' `DOWN' message, from whose reason {@link
%% result/1} reads the answer. `Args' is the external term of the argument list.
-spec start(kprof:identity_fun(), {binary(), binary(), binary()}) -> {pid(), reference()}.
start(Fun, {M, F, Args}) ->
    Ask = fun() ->
        _ = seq_trace:set_token([]),
        _ = timer_kill(self()),
        exit({kprof_identity, ask(Fun, M, F, Args)})
    end,
    spawn_opt(Ask, [
        monitor, {max_heap_size, #{size => ?HEAP_WORDS, kill => true, error_logger => false}}
    ]).

%% The time limit lies in a process of its own: a fun that never waits cannot time itself.
timer_kill(Pid) ->
    spawn(fun() ->
        Ref = erlang:monitor(process, Pid),
        receive
            {'DOWN', Ref, process, Pid, _} -> ok
        after ?TIME_MS -> exit(Pid, kill)
        end
    end).

ask(Fun, M, F, Args) ->
    try
        false = compressed(Args),
        text(
            Fun({
                binary_to_existing_atom(M, utf8),
                binary_to_existing_atom(F, utf8),
                binary_to_term(Args, [safe])
            })
        )
    catch
        _:_ -> nil
    end.

%% What is small as bytes must be small as a term. (bits: see kprof_json.)
compressed(<<131, 80, _/bits>>) -> true;
compressed(_) -> false.

%% @doc The identity's text from the reason of a `DOWN' message; `nil' when the fun said nothing,
%% failed or took too long.
-spec result(term()) -> binary() | nil.
result({kprof_identity, Result}) -> Result;
result(_) -> nil.

%% @doc An identity as text, as it stands in the database: `{a, b}' is `a_b', `{a, {b, c}}' `a
%% /b/c', and with a method of HTTP or what begins as a path does `{"GET", "timer"}' is `GET
%% /timer', as the web servers' helpers write it; `undefined' is `nil', what is no identity too.
-spec text(term()) -> binary() | nil.
text({A, Path}) when is_tuple(Path) ->
    case [part(P) || P <- [A | tuple_to_list(Path)]] of
        [TA] when is_binary(TA) -> <<TA/binary, " /">>;
        [TA | Segments] = Parts ->
            case lists:member(nil, Parts) of
                true -> nil;
                false -> iolist_to_binary([TA, " " | [["/", S] || S <- Segments]])
            end
    end;
text({A, B}) ->
    case {part(A), part(B)} of
        {TA, TB} when is_binary(TA), is_binary(TB) ->
            case {binary:longest_common_prefix([TB, <<"/">>]), kprof_web:is_method(TA)} of
                {1, _} -> <<TA/binary, " ", TB/binary>>;
                {0, true} -> <<TA/binary, " /", TB/binary>>;
                {0, false} -> <<TA/binary, $_, TB/binary>>
            end;
        _ ->
            nil
    end;
text(undefined) ->
    nil;
text(X) ->
    part(X).

part(A) when is_atom(A) -> kprof_mfa:atom(A);
part(B) when is_binary(B) -> B;
part(L) when is_list(L) ->
    try unicode:characters_to_binary(L) of
        B when is_binary(B) -> B;
        _ -> nil
    catch
        error:badarg -> nil
    end;
part(_) ->
    nil.
