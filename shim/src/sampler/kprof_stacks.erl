%% SPDX-License-Identifier: Apache-2.0
%% @doc Sampling of stacks as a trace sees it: the collector wants a run, one at a time, and gets
%% its batches and its end. {@link kprof_sampler} is the process that looks; this is what its owner
%% does, who alone sends to the collector. A run goes on while the control connection is there,
%% whether anything is traced or not.
-module(kprof_stacks).

-export([new/0, wanted/3, stop/2, event/3, ended/4, close/2, lost/1, processes/1]).

-export_type([stacks/0, wanted/0, around/0]).

-define(FINISH_MS, 1000).

-type wanted() :: #{
    id := integer(),
    % 0: until stopped
    seconds := non_neg_integer(),
    % of each process
    hz := 1..1000,
    top := 1..1000,
    by := kprof_busiest:by() | unknown,
    every_ms := pos_integer(),
    budget_ppm := 1000..500000,
    registered := [binary()],
    processes := [binary()],
    % empty: any
    application := binary()
}.
-type around() :: #{
    control := kprof_control:control(), arming := kprof_arming:arming(), atom() => term()
}.
%% What it has to know of the trace.

-record(run, {
    id :: integer(),
    sampler :: kprof_sampler:sampler(),
    % as told last
    totals :: kprof_sampler:totals()
}).
-opaque stacks() :: none | #run{}.

%% @doc No run.
-spec new() -> stacks().
new() ->
    none.

%% @doc The sampler's processes, which are not traced.
-spec processes(stacks()) -> [pid()].
processes(none) -> [];
processes(#run{sampler = Sampler}) -> kprof_sampler:processes(Sampler).

%% @doc The collector wants a run.
-spec wanted(wanted(), around(), stacks()) -> stacks().
wanted(#{id := Id}, Around, #run{} = Run) ->
    ok = refused(Id, error, "its stacks are sampled already: one run at a time", Around),
    Run;
wanted(#{id := Id, by := unknown}, Around, none) ->
    ok = refused(Id, error, "its shim cannot rank processes by that", Around),
    none;
wanted(#{id := Id} = Wanted, #{control := Control, arming := Arming} = Around, none) ->
    case kprof_sampler:start_link(Wanted) of
        {ok, Sampler, At, Text} ->
            Tracer = kprof_arming:tracer(Arming),
            _ =
                Tracer =:= undefined orelse
                    kprof_tracer:leave_out(Tracer, kprof_sampler:processes(Sampler)),
            ok = kprof_control:told(kprof_protocol:stacks_started(Id, At, Text), Control),
            ok = kprof_sampler:go(Sampler),
            #run{id = Id, sampler = Sampler, totals = kprof_sampler:no_totals()};
        {error, Reason, Text} ->
            ok = refused(Id, Reason, Text, Around),
            none
    end.

refused(Id, Reason, Text, Around) ->
    stopped(Id, erlang:monotonic_time(), Reason, Text, kprof_sampler:no_totals(), Around).

stopped(Id, At, Reason, Text, Totals, #{control := Control}) ->
    kprof_control:told(kprof_protocol:stacks_stopped(Id, At, Reason, Text, Totals), Control).

%% @doc The collector wants no more of the one of this number.
-spec stop(term(), stacks()) -> ok.
stop(Id, #run{id = Id, sampler = Sampler}) ->
    kprof_sampler:stop(Sampler);
stop(_, _) ->
    ok.

%% @doc What the sampler has sent to its owner.
-spec event(kprof_sampler:told(), around(), stacks()) -> stacks().
event({kprof_sampler, Pid, What}, Around, #run{sampler = Sampler} = Run) ->
    case kprof_sampler:pid(Sampler) of
        Pid -> told(What, Around, Run);
        _ -> Run
    end;
event(_, _, none) ->
    none.

told({taken, At, Bytes, Totals}, #{control := Control}, #run{id = Id, sampler = Sampler} = Run) ->
    ok = kprof_control:told(kprof_protocol:stacks_taken(Id, At, Bytes, Totals), Control),
    ok = kprof_sampler:acknowledge(Sampler),
    Run#run{totals = Totals};
told({over, At, Reason, Text, Totals}, Around, #run{id = Id}) ->
    ok = stopped(Id, At, Reason, Text, Totals, Around),
    none.

%% @doc A linked process has ended: it may be the sampler, before its time.
-spec ended(pid() | port(), term(), around(), stacks()) -> stacks().
ended(From, Why, Around, #run{id = Id, sampler = Sampler, totals = Totals} = Run) ->
    case kprof_sampler:pid(Sampler) of
        From ->
            Text = io_lib:format("the sampler ended: ~0tP", [Why, 20]),
            ok = stopped(Id, erlang:monotonic_time(), error, Text, Totals, Around),
            none;
        _ ->
            Run
    end;
ended(_, _, _, none) ->
    none.

%% @doc The trace ends: so does the run, and what it has is told. Waits for that, for a second at
%% most.
-spec close(around(), stacks()) -> stacks().
close(_, none) ->
    none;
close(Around, #run{sampler = Sampler} = Run) ->
    ok = kprof_sampler:stop(Sampler),
    closing(Around, erlang:monotonic_time(millisecond) + ?FINISH_MS, Run).

closing(Around, Deadline, #run{id = Id, sampler = Sampler, totals = Totals} = Run) ->
    Pid = kprof_sampler:pid(Sampler),
    receive
        {kprof_sampler, Pid, _} = Told ->
            case event(Told, Around, Run) of
                none -> none;
                More -> closing(Around, Deadline, More)
            end;
        {'EXIT', Pid, Why} ->
            ended(Pid, Why, Around, Run)
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        Text = "the trace was stopped",
        ok = stopped(Id, erlang:monotonic_time(), stopped, Text, Totals, Around),
        lost(Run)
    end.

%% @doc The collector is gone: nobody will hear how it ends.
-spec lost(stacks()) -> stacks().
lost(none) ->
    none;
lost(#run{sampler = Sampler}) ->
    ok = kprof_sampler:kill(Sampler),
    none.
