%% SPDX-License-Identifier: Apache-2.0
%% The application of scenario 15: requests that take long, that fail, and that do neither, and a
%% callback that notes what it is called with.
-module(scenario_slow).

-export([start/0, trace/2, again/2, requests/0, one/1, truth/1, calls/0]).

-import(scenario_tiers, [alpha/1, beta/1, gamma/1, request/2, marked/2, call/2]).

-spec start() -> ok.
start() ->
    ok = scenario_truth:start(),
    Self = self(),
    _ = spawn(fun() ->
        slow_calls = ets:new(slow_calls, [named_table, public, ordered_set]),
        Self ! up,
        receive
            stop -> ok
        end
    end),
    receive
        up -> ok
    end,
    lists:foreach(fun scenario_tiers:start/1, [one, two]).

-spec trace(inet:port_number(), pos_integer()) -> ok | {error, term()}.
trace(Port, SlowUs) ->
    ok = kprof:start(),
    kprof:start_trace([
        {tier_config, scenario_tiers:tiers()},
        {identity_f, fun
            ({scenario_tiers, handle, [Identity, _]}) -> Identity;
            (_) -> undefined
        end},
        {slow_call_threshold, SlowUs},
        {slow_call_callback, fun slow/2},
        {collector, {"127.0.0.1", Port}}
    ]).

%% Another trace, with nothing of the one before.
-spec again(inet:port_number(), pos_integer()) -> ok | {error, term()}.
again(Port, SlowUs) ->
    ok = scenario_truth:clear(),
    true = ets:delete_all_objects(slow_calls),
    trace(Port, SlowUs).

%% What is called with every slow request. For some it hangs, for some it crashes.
slow(Spans, Identity) ->
    true = ets:insert(slow_calls, {
        erlang:monotonic_time(), self(), Identity, Spans, seq_trace:get_token()
    }),
    case Identity of
        <<"hangs">> -> timer:sleep(infinity);
        <<"crashes">> -> error(on_purpose);
        _ -> ok
    end.

ms(Ms) -> timer:sleep(Ms).

%% All of them, over the threshold of 30 ms or not, each in a process of its own: two trees of calls
%% and two that fail, all four over it; twelve over it, five that fail below it, and eight below it.
-spec requests() -> ok.
requests() ->
    lists:foreach(
        fun in_process/1,
        [fun() -> tree(tree) end || _ <- [1, 2]] ++
            [fun() -> failing(failing, Ms) end || Ms <- [35, 38]] ++
            [
                fun() -> lasting(over, Ms) end
             || Ms <- [44, 34, 36, 56, 38, 40, 42, 54, 46, 48, 50, 52]
            ] ++
            [fun() -> failing(failed, Ms) end || Ms <- [4, 12, 6, 10, 8]] ++
            [fun() -> lasting(fast, Ms) end || Ms <- [3, 18, 5, 12, 7, 15, 9, 2]]
    ).

%% One request over the threshold.
-spec one(atom()) -> ok.
one(Identity) -> in_process(fun() -> lasting(Identity, 40) end).

in_process(F) ->
    {Pid, Ref} = spawn_monitor(fun() ->
        _ = F(),
        ok
    end),
    receive
        {'DOWN', Ref, process, Pid, normal} -> ok
    end.

%% Children by call, by spawn and in parallel, one that fails and one that outlives the request.
tree(I) ->
    request(I, fun() ->
        Self = self(),
        ms(3),
        alpha(fun() ->
            call(one, fun() ->
                beta(fun() ->
                    ms(4),
                    catch gamma(fun() ->
                        ms(5),
                        error(on_purpose)
                    end)
                end)
            end),
            ms(6)
        end),
        Pids = [
            scenario_truth:spawn(fun() ->
                beta(fun() -> ms(Ms) end),
                Self ! {done, self()}
            end)
         || Ms <- [12, 20]
        ],
        [
            receive
                {done, Pid} -> ok
            end
         || Pid <- Pids
        ],
        alpha(fun() ->
            scenario_tiers:cast(two, fun() -> gamma(fun() -> ms(30) end) end),
            ms(4)
        end)
    end),
    ms(40).

lasting(I, Ms) ->
    marked(I, fun() -> alpha(fun() -> ms(Ms) end) end).

failing(I, Ms) ->
    catch request(I, fun() ->
        alpha(fun() ->
            ms(Ms),
            error(on_purpose)
        end)
    end).

%% Writes every span down as scenario_truth has it.
-spec truth(file:name_all()) -> ok.
truth(File) ->
    file:write_file(File, [[Line, $\n] || Line <- scenario_truth:spans()]).

%% What the callback was called with, in order: {identity, tiers with their depths, whether it ran
%% apart from all requests}.
-spec calls() -> [{binary(), [{binary(), integer()}], boolean()}].
calls() ->
    Pids = scenario_truth:pids(),
    [
        {Identity,
            [
                {Tier, Depth}
             || #{
                    tier := Tier,
                    depth := Depth,
                    pid := <<"<", _/binary>>,
                    start_us := Start,
                    duration_us := Duration
                } <- Spans,
                is_float(Start),
                is_float(Duration)
            ],
            not lists:member(Pid, Pids) andalso Token =:= []}
     || {_, Pid, Identity, Spans, Token} <- ets:tab2list(slow_calls)
    ].
