%% SPDX-License-Identifier: Apache-2.0
%% The sample application under more traced calls than a trace port carries: requests one after the
%% other in some processes, and ten times a second what became of them.
%%
%% How fast that would be untraced is what a twin tells: a second node under the same load, on the
%% same processors at the same time, so that whatever else the machine does slows both. A rate is a
%% share: requests of the traced node for each one of the twin, as a percentage of what it was while
%% neither was traced.
%%
%% Who gets the processors in a second, the twin or this node, is for the kernel to say, and says
%% nothing of tracing: so a node's requests are divided by the time that its schedulers ran, each
%% bound to a processor that it shares with one of its twin's. Tracing that makes schedulers sleep
%% or block would not be seen so: for the time as a whole they are divided by what its schedulers
%% could have run, too, which is all the time but that in which they stood ready and others were let
%% run. (/proc/PID/task/TID/schedstat: run, waited, in ns.) Times in which third programs had more
%% than a quarter of a processor do not count.
-module(scenario_overload).

-export([start/1, stop/0, save/1, untraced/0, told/4, share/3, memory/0]).

-define(SAMPLE_MS, 100).
% samples
-define(SECOND, 10).
% processor time of others in a second
-define(FOREIGN_MS, 250).

-record(at, {
    ms :: integer(),
    requests :: non_neg_integer(),
    resident_kb :: non_neg_integer(),
    status :: atom(),
    % processor time of the whole machine, what its host took away included
    busy_ms :: non_neg_integer(),
    % and of this node
    own_ms :: non_neg_integer(),
    % this node's schedulers
    ran_ms :: float(),
    % that they could have run, since the system's start
    free_ms :: float()
}).

%% Begins N processes that make requests of the shop without end, and the one that watches.
-spec start(pos_integer()) -> ok.
start(N) ->
    Count = counters:new(1, [write_concurrency]),
    Workers = [spawn(fun() -> work(Count, I) end) || I <- lists:seq(1, N)],
    Self = self(),
    true = register(
        ?MODULE,
        spawn(fun() ->
            _ = process_flag(priority, high),
            Self ! watching,
            watch(Count, Workers, schedulers(), os:system_time(millisecond), [])
        end)
    ),
    receive
        watching -> ok
    end.

work(Count, I) ->
    {200, _} = shop_trace:request(shop_http, handle_request, [read, #{id => 1 + I rem 50}]),
    counters:add(Count, 1, 1),
    work(Count, I + 1).

watch(Count, Workers, Schedulers, Next, Samples) ->
    receive
        {samples, From} ->
            From ! {samples, lists:reverse(Samples)},
            watch(Count, Workers, Schedulers, Next, Samples);
        stop ->
            lists:foreach(fun(Pid) -> exit(Pid, kill) end, Workers)
    after max(0, Next - os:system_time(millisecond)) ->
        {Ran, Free} = times(Schedulers),
        Sample = #at{
            ms = os:system_time(millisecond),
            requests = counters:get(Count, 1),
            resident_kb = resident(),
            status = status(),
            busy_ms = busy(),
            own_ms = own(),
            ran_ms = Ran,
            free_ms = Free
        },
        watch(Count, Workers, Schedulers, Next + ?SAMPLE_MS, [Sample | Samples])
    end.

%% As the system counts it, KB.
resident() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
    binary_to_integer(Pages) * 4.

busy() ->
    {ok, Text} = file:read_file("/proc/stat"),
    [Line | _] = binary:split(Text, <<"\n">>),
    [<<"cpu">>, User, Nice, System, _Idle, _IoWait, Irq, SoftIrq, Steal | _] = binary:split(
        Line, <<" ">>, [global, trim_all]
    ),
    10 * lists:sum([binary_to_integer(B) || B <- [User, Nice, System, Irq, SoftIrq, Steal]]).

own() ->
    {ok, Text} = file:read_file("/proc/self/stat"),
    [_, Rest] = binary:split(Text, <<") ">>),
    Fields = binary:split(Rest, <<" ">>, [global]),
    10 * (binary_to_integer(lists:nth(12, Fields)) + binary_to_integer(lists:nth(13, Fields))).

%% The files that tell of this node's schedulers' threads; named so before OTP 26, and from then on.
schedulers() ->
    Threads = filelib:wildcard("/proc/self/task/*"),
    Files = [
        filename:join(Thread, "schedstat")
     || Thread <- Threads,
        {ok, Name} <- [file:read_file(filename:join(Thread, "comm"))],
        re:run(Name, "_scheduler$|^erts_sched_") =/= nomatch
    ],
    true = length(Files) =:= erlang:system_info(schedulers),
    Files.

times(Files) ->
    Lines = [
        binary:split(Text, <<" ">>, [global])
     || File <- Files, {ok, Text} <- [file:read_file(File)]
    ],
    Ms = fun(N) ->
        lists:sum([binary_to_integer(lists:nth(N, Line)) || Line <- Lines]) / 1000000
    end,
    {Ms(1), length(Files) * erlang:monotonic_time(microsecond) / 1000 - Ms(2)}.

status() ->
    % there once all modules are loaded
    case whereis(kprof_life) of
        undefined -> not_started;
        _ -> kprof:status()
    end.

-spec stop() -> ok.
stop() ->
    ?MODULE ! stop,
    ok.

samples() ->
    ?MODULE ! {samples, self()},
    receive
        {samples, Samples} -> Samples
    after 60000 -> error(timeout)
    end.

%% The twin's samples, for the traced node to read.
-spec save(file:filename()) -> ok.
save(File) ->
    ok = file:write_file(File, term_to_binary(samples())).

%% Before tracing began, without the first second, and from then on.
parts() ->
    {Before, After} = lists:splitwith(
        fun(#at{status = Status}) -> Status =:= not_started orelse Status =:= idle end, samples()
    ),
    {lists:nthtail(?SECOND, Before), After}.

%% Requests a second while nothing was traced.
-spec untraced() -> non_neg_integer().
untraced() ->
    {[A | _] = Before, _} = parts(),
    B = lists:last(Before),
    (B#at.requests - A#at.requests) * 1000 div (B#at.ms - A#at.ms).

%% The share of each second from `After' ms after the begin of tracing on, for `For' ms; the lowest
%% that any `Seconds' seconds on end have, wherever they begin; the lowest that there was before
%% tracing, when all should be 100; how many of these under tracing count; and the share of the time
%% as a whole.
-spec told(file:filename(), non_neg_integer(), pos_integer(), pos_integer()) ->
    {
        Each :: string(),
        Worst :: non_neg_integer(),
        WorstUntraced :: non_neg_integer(),
        Counted :: non_neg_integer(),
        Whole :: non_neg_integer()
    }.
told(File, After, For, Seconds) ->
    {Twin, Before, Seen} = seen(File, After, For),
    Shares = fun(From, N) ->
        [
            {percent(#at.ran_ms, Twin, Before, Span), is_fair(Twin, Span, N)}
         || Span <- spans(From, N)
        ]
    end,
    Each = [
        io_lib:format(
            case Counts of
                true -> " ~b";
                false -> " (~b)"
            end,
            [Share]
        )
     || {I, {Share, Counts}} <- lists:enumerate(Shares(Seen, 1)), I rem ?SECOND =:= 1
    ],
    Counted = [Share || {Share, true} <- Shares(Seen, Seconds)],
    {
        lists:flatten(Each),
        lists:min([999 | Counted]),
        lists:min([100 | [S || {S, true} <- Shares(Before, Seconds)]]),
        length(Counted),
        percent(#at.free_ms, Twin, Before, all(Seen))
    }.

%% The share of `For' ms from `After' ms after the begin of tracing on, whoever else has the
%% processors.
-spec share(file:filename(), non_neg_integer(), pos_integer()) -> non_neg_integer().
share(File, After, For) ->
    {Twin, Before, Seen} = seen(File, After, For),
    percent(#at.ran_ms, Twin, Before, all(Seen)).

seen(File, After, For) ->
    {ok, Bytes} = file:read_file(File),
    Twin = binary_to_term(Bytes),
    End = lists:last(Twin),
    {Before, [#at{ms = Begin} | _] = Samples} = parts(),
    {Twin, Before, [
        S
     || #at{ms = Ms} = S <- Samples, Ms - Begin >= After, Ms - Begin =< After + For, Ms =< End#at.ms
    ]}.

all(Samples) -> {hd(Samples), lists:last(Samples)}.

percent(Time, Twin, Before, Span) ->
    round(100 * ratio(Time, Twin, Span) / ratio(Time, Twin, all(Before))).

spans(Samples, Seconds) ->
    N = Seconds * ?SECOND,
    lists:zip(lists:sublist(Samples, length(Samples) - N), lists:nthtail(N, Samples)).

is_fair(Twin, Span, Seconds) ->
    foreign(Twin, Span) =< ?FOREIGN_MS * Seconds.

%% Who had no time at all made no requests: others had it then, and the span is not fair.
ratio(Time, Twin, {A, B}) ->
    Twins =
        (at(B, #at.requests, Twin) - at(A, #at.requests, Twin)) /
            max(1, at(B, Time, Twin) - at(A, Time, Twin)),
    (B#at.requests - A#at.requests) / max(1, element(Time, B) - element(Time, A)) /
        max(0.001, Twins).

foreign(Twin, {A, B}) ->
    (B#at.busy_ms - A#at.busy_ms) - (B#at.own_ms - A#at.own_ms) -
        (at(B, #at.own_ms, Twin) - at(A, #at.own_ms, Twin)).

%% A field of the twin at the time of a sample, between two of its own.
at(#at{ms = T} = Sample, Field, [#at{ms = T0} = A, #at{ms = T1} = B | Rest]) ->
    case T =< T1 of
        true ->
            element(Field, A) +
                (element(Field, B) - element(Field, A)) * (T - T0) / max(1, T1 - T0);
        false ->
            at(Sample, Field, [B | Rest])
    end.

%% MB that the node's memory was over its highest of before.
-spec memory() -> integer().
memory() ->
    {Before, After} = parts(),
    Most = fun(Samples) -> lists:max([M || #at{resident_kb = M} <- Samples]) end,
    (Most(After) - Most(Before)) div 1024.
