%% SPDX-License-Identifier: Apache-2.0
%% Far more traced calls than a trace port carries: processes that call a tier in a tight loop under
%% a token.
-module(scenario_flood).

-export([run/2, requests/1, most/0]).
-export([tick/1, deep/1, down/1, further/1]).

%% Runs N processes for so many milliseconds, each a request after another of a thousand calls, and
%% watches the node's memory. Gives how many calls were made. The processes end by themselves,
%% whatever becomes of the caller.
-spec run(pos_integer(), pos_integer()) -> non_neg_integer().
run(N, Ms) ->
    Self = self(),
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    true = register(scenario_memory, spawn(fun() -> watch(0) end)),
    Pids = [spawn(fun() -> Self ! {self(), loop(Deadline, 0)} end) || _ <- lists:seq(1, N)],
    lists:sum([
        receive
            {Pid, Calls} -> Calls
        end
     || Pid <- Pids
    ]).

loop(Deadline, Calls) ->
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> loop(Deadline, Calls + kprof:do_apply(?MODULE, requests, [1000]));
        false -> Calls
    end.

%% A request of so many calls. After each 5000 it pauses: who takes its messages in may keep up with
%% that, however little of the processor he gets.
-spec requests(non_neg_integer()) -> non_neg_integer().
requests(N) ->
    ok = ticks(N),
    N.

ticks(N) when N > 5000 ->
    ok = ticks(5000),
    ok = timer:sleep(20),
    ticks(N - 5000);
ticks(N) ->
    lists:foreach(fun tick/1, lists:seq(1, N)).

-spec tick(integer()) -> integer().
tick(N) -> N.

%% One request with so many calls open at once, of two functions in turn; with pauses, so that all
%% messages fit through a trace port.
-spec deep(non_neg_integer()) -> ok.
deep(N) ->
    N = down(N),
    ok.

-spec down(non_neg_integer()) -> non_neg_integer().
down(0) -> 0;
down(N) -> 1 + further(N).

-spec further(pos_integer()) -> non_neg_integer().
further(N) ->
    _ = N rem 200 =:= 0 andalso timer:sleep(3),
    Below = down(N - 1),
    _ = N rem 200 =:= 0 andalso timer:sleep(3),
    Below.

%% The most bytes that the node has used, by its own account, at any time of the last run.
-spec most() -> non_neg_integer().
most() ->
    case whereis(scenario_memory) of
        undefined ->
            error(no_run);
        Pid ->
            Pid ! {read, self()},
            receive
                {most, Bytes} -> Bytes
            after 60000 -> error(timeout)
            end
    end.

watch(Most) ->
    _ = erlang:process_flag(priority, high),
    receive
        {read, From} ->
            From ! {most, Most},
            watch(Most)
    after 20 ->
        watch(max(Most, erlang:memory(total)))
    end.
