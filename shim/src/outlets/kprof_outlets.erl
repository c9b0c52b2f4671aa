%% SPDX-License-Identifier: Apache-2.0
%% @doc Where things go that the collector sends back for the user of this node: to the stats_dumper
%% and print_calls, and to the slow_call_callback. Each has a process of its own, linked to the
%% owner, who traps exits.
-module(kprof_outlets).

-export([none/0, start/1, stop/1, pids/1, fields/1, give/2, ended/2]).

-export_type([outlets/0]).

-record(outlets, {
    options = #{} :: #{} | kprof_options:options(),
    printer = undefined :: undefined | pid(),
    slow = undefined :: undefined | pid()
}).
-opaque outlets() :: #outlets{}.

%% @doc None.
-spec none() -> outlets().
none() ->
    #outlets{}.

%% @doc Starts those of these options.
-spec start(kprof_options:options()) -> outlets().
start(Options) ->
    #outlets{options = Options, printer = printer(Options), slow = slow(Options)}.

printer(#{stats_dumper := false, print_calls := false}) -> undefined;
printer(#{stats_dumper := Dumper, leader := Leader}) -> kprof_printer:start_link(Dumper, Leader).

slow(#{slow_callback := undefined}) -> undefined;
slow(#{slow_callback := Callback}) -> kprof_slow:start_link(Callback).

%% @doc Ends them, after what they have been given, some seconds later at most.
-spec stop(outlets()) -> ok.
stop(#outlets{printer = Printer, slow = Slow}) ->
    _ = Printer =:= undefined orelse kprof_printer:stop(Printer),
    _ = Slow =:= undefined orelse kprof_slow:stop(Slow),
    ok.

%% @doc Their processes, which are not to be traced.
-spec pids(outlets()) -> [pid()].
pids(#outlets{printer = Printer, slow = Slow}) ->
    [Pid || Pid <- [Printer, Slow], is_pid(Pid)].

%% @doc What the collector is told: which messages are wanted.
-spec fields(outlets()) ->
    #{
        stats := boolean(),
        calls := boolean(),
        slow := boolean(),
        slow_threshold_us => non_neg_integer()
    }.
fields(#outlets{
    options = #{
        stats_dumper := Dumper, print_calls := Calls, slow_callback := Callback, slow_us := Us
    }
}) ->
    Wanted = #{stats => Dumper =/= false, calls => Calls, slow => Callback =/= undefined},
    case Us of
        undefined -> Wanted;
        _ -> Wanted#{slow_threshold_us => Us}
    end.

%% @doc Gives a message to whom it is for, if it is for any of them.
-spec give(kprof_protocol:told(), outlets()) -> ok.
give({stats, Rows}, #outlets{printer = Pid}) when is_pid(Pid) ->
    kprof_printer:stats(Pid, [kprof_printer:row(R) || R <- Rows]);
give({calls, Request}, #outlets{printer = Pid}) when is_pid(Pid) ->
    kprof_printer:calls(Pid, Request);
give({slow, Request}, #outlets{slow = Pid}) when is_pid(Pid) ->
    kprof_slow:slow(Pid, Request);
give(_, _) ->
    ok.

%% @doc A process has ended: if it was one of them, it is started again.
-spec ended(pid() | port(), outlets()) -> outlets().
ended(Pid, #outlets{options = Options, printer = Pid} = Outlets) ->
    Outlets#outlets{printer = printer(Options)};
ended(Pid, #outlets{options = Options, slow = Pid} = Outlets) ->
    Outlets#outlets{slow = slow(Options)};
ended(_, Outlets) ->
    Outlets.
