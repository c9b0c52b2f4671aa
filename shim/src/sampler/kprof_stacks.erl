%% SPDX-License-Identifier: Apache-2.0
%% @doc Sampling of stacks as a trace sees it: the collector wants a run, and gets its batches and
%% its end. {@link kprof_sampler_loop} is the process that looks; this is what its owner does, who
%% alone sends to the collector. A run goes on while the control connection is there, whether
%% anything is traced or not. There is one at a time, and beside it one that stands for ever.
-module(kprof_stacks).

-export([new/0, wanted/3, stop/2, anew/2, event/3, ended/4, close/2, lost/1, processes/1]).

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
    % of one that stands for ever, else 0
    slice_s := non_neg_integer(),
    budget_ppm := 1000..500000,
    registered := [binary()],
    processes := [binary()],
    % empty: any
    application := binary(),
    % of the tokens that processes hold are told
    labels := boolean()
}.
-type around() :: #{
    control := kprof_control:control(), arming := kprof_arming:arming(), atom() => term()
}.
%% What it has to know of the trace.

-record(run, {
    id :: integer(),
    % it stands for ever
    stands :: boolean(),
    sampler :: kprof_sampler:sampler(),
    % as told last
    totals :: kprof_sampler:totals()
}).
-opaque stacks() :: [#run{}].

%% @doc No run.
-spec new() -> stacks().
new() ->
    [].

%% @doc The samplers' processes, which are not traced.
-spec processes(stacks()) -> [pid()].
processes(Runs) ->
    lists:append([kprof_sampler:processes(Sampler) || #run{sampler = Sampler} <- Runs]).

%% @doc The collector wants a run.
-spec wanted(wanted(), around(), stacks()) -> stacks().
wanted(#{id := Id, by := unknown}, Around, Runs) ->
    ok = refused(Id, error, "its shim cannot rank processes by that", Around),
    Runs;
wanted(#{id := Id, slice_s := Slice} = Wanted, Around, Runs) ->
    Stands = Slice > 0,
    case [Run || #run{stands = S} = Run <- Runs, S =:= Stands] of
        [] ->
            begin_run(Wanted, Stands, Around, Runs);
        _ ->
            ok = refused(Id, error, "its stacks are sampled already: one run at a time", Around),
            Runs
    end.

begin_run(#{id := Id} = Wanted, Stands, #{control := Control, arming := Arming} = Around, Runs) ->
    case kprof_sampler:start_link(Wanted) of
        {ok, Sampler, At, Text} ->
            Tracer = kprof_arming:tracer(Arming),
            _ =
                Tracer =:= undefined orelse
                    kprof_tracer:leave_out(Tracer, kprof_sampler:processes(Sampler)),
            ok = kprof_control:told(kprof_protocol:stacks_started(Id, At, Text), Control),
            ok = kprof_sampler:go(Sampler),
            Totals = kprof_sampler:no_totals(),
            [#run{id = Id, stands = Stands, sampler = Sampler, totals = Totals} | Runs];
        {error, Reason, Text} ->
            ok = refused(Id, Reason, Text, Around),
            Runs
    end.

refused(Id, Reason, Text, Around) ->
    stopped(Id, erlang:monotonic_time(), Reason, Text, kprof_sampler:no_totals(), Around).

stopped(Id, At, Reason, Text, Totals, #{control := Control}) ->
    kprof_control:told(kprof_protocol:stacks_stopped(Id, At, Reason, Text, Totals), Control).

%% @doc The collector wants no more of the one of this number.
-spec stop(term(), stacks()) -> ok.
stop(Id, Runs) ->
    lists:foreach(fun kprof_sampler:stop/1, of_number(Id, Runs)).

%% @doc What the one of this number tells once is to be told anew: what comes from there on is kept
%% apart.
-spec anew(term(), stacks()) -> ok.
anew(Id, Runs) ->
    lists:foreach(fun kprof_sampler:anew/1, of_number(Id, Runs)).

of_number(Id, Runs) ->
    [Sampler || #run{id = Of, sampler = Sampler} <- Runs, Of =:= Id].

%% @doc What a sampler has sent to its owner.
-spec event(kprof_sampler:told(), around(), stacks()) -> stacks().
event({kprof_sampler, Pid, What}, Around, Runs) ->
    of_process(Pid, fun(Run) -> told(What, Around, Run) end, Runs).

%% What becomes of the run of this process, if it is one's.
of_process(Pid, Change, Runs) ->
    lists:flatmap(
        fun(#run{sampler = Sampler} = Run) ->
            case kprof_sampler:pid(Sampler) of
                Pid -> Change(Run);
                _ -> [Run]
            end
        end,
        Runs
    ).

told({taken, At, Bytes, Totals}, #{control := Control}, #run{id = Id, sampler = Sampler} = Run) ->
    ok = kprof_control:told(kprof_protocol:stacks_taken(Id, At, Bytes, Totals), Control),
    ok = kprof_sampler:acknowledge(Sampler),
    [Run#run{totals = Totals}];
told({less, Share}, #{control := Control}, Run) ->
    Text = io_lib:format(
        "stacks are sampled less often than wanted for a while, ~b % of that now, to keep to 200 "
        "MB a day: with a smaller `top' more often each",
        [round(100 * Share)]
    ),
    logger:notice("kprof: ~ts", [Text]),
    ok = kprof_control:told(kprof_protocol:note(info, Text), Control),
    [Run];
told({over, At, Reason, Text, Totals}, Around, #run{id = Id}) ->
    ok = stopped(Id, At, Reason, Text, Totals, Around),
    [].

%% @doc A linked process has ended: it may be a sampler, before its time.
-spec ended(pid() | port(), term(), around(), stacks()) -> stacks().
ended(From, Why, Around, Runs) ->
    of_process(
        From,
        fun(#run{id = Id, totals = Totals}) ->
            Text = io_lib:format("the sampler ended: ~0tP", [Why, 20]),
            ok = stopped(Id, erlang:monotonic_time(), error, Text, Totals, Around),
            []
        end,
        Runs
    ).

%% @doc The trace ends: so do the runs, and what they have is told. Waits for that, for a second at
%% most.
-spec close(around(), stacks()) -> stacks().
close(Around, Runs) ->
    lists:foreach(fun(#run{sampler = Sampler}) -> kprof_sampler:stop(Sampler) end, Runs),
    closing(Around, erlang:monotonic_time(millisecond) + ?FINISH_MS, Runs).

closing(_, _, []) ->
    [];
closing(Around, Deadline, [#run{sampler = Sampler} | _] = Runs) ->
    Pid = kprof_sampler:pid(Sampler),
    receive
        {kprof_sampler, Pid, _} = Told ->
            closing(Around, Deadline, event(Told, Around, Runs));
        {'EXIT', Pid, Why} ->
            closing(Around, Deadline, ended(Pid, Why, Around, Runs))
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        lists:foreach(
            fun(#run{id = Id, totals = Totals}) ->
                Text = "the trace was stopped",
                stopped(Id, erlang:monotonic_time(), stopped, Text, Totals, Around)
            end,
            Runs
        ),
        lost(Runs)
    end.

%% @doc The collector is gone: nobody will hear how they end.
-spec lost(stacks()) -> stacks().
lost(Runs) ->
    lists:foreach(fun(#run{sampler = Sampler}) -> kprof_sampler:kill(Sampler) end, Runs),
    [].
