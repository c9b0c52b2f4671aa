%% SPDX-License-Identifier: Apache-2.0
%% @doc One arming: a trace port, or a trace of the native tracer, the relay that carries what comes
%% out of it to the collector, and the flags and patterns of all that is traced to it. Opened, set,
%% changed and undone as a whole, by one process, which traps exits and gives those that it gets to
%% {@link ended/3}.
%%
%% A trace port is never used twice: its next client would begin in the middle of a message. After
%% the guard has tripped, what is in the port is still delivered until the next arming; and when the
%% collector is lost it is still counted. So nothing gets lost untold: {@link total/1} is what the
%% collector compares with what came.
-module(kprof_arming).

-export([
    new/1,
    tracer/1,
    kind/1,
    takes/1,
    messages_lost/1,
    warnings/1,
    open/3,
    set/3,
    set_flags/3,
    processes/2,
    change/4,
    disarm/2,
    drain/1,
    drop/2,
    tripped/1,
    finish/1
]).
-export([event/2, ended/3, messages/1, counter/1, total/1, told/1]).

-export_type([arming/0, wanted/0]).

-define(DRAIN_MS, 2500).

-record(arming, {
    wanted = port :: wanted(),
    % why it is not the native one that was wanted
    instead = none :: none | unicode:chardata(),
    tracer = undefined :: undefined | kprof_tracer:tracer(),
    % messages that processes take
    takes = false :: boolean() | {other, term()},
    relay = undefined :: undefined | kprof_relay:relay(),
    % of a port that gets no more messages
    draining = undefined :: undefined | {kprof_tracer:tracer(), kprof_relay:relay()},
    % of the last port, if it is closed and the collector has not been told
    total = none :: none | total()
}).
-opaque arming() :: #arming{}.
-type wanted() :: port | native | auto.
%% auto: native, where that is known to be safe. The port is what there always is.
-type total() :: {Messages :: non_neg_integer(), Unsent :: non_neg_integer()}.
%% What {@link kprof_relay:total/1} tells.

%% @doc Nothing is armed.
-spec new(wanted()) -> arming().
new(Wanted) ->
    #arming{wanted = Wanted}.

%% @doc The tracer; `undefined' while nothing is armed.
-spec tracer(arming()) -> undefined | kprof_tracer:tracer().
tracer(#arming{tracer = Tracer}) ->
    Tracer.

%% @doc What it traces to, while it is armed.
-spec kind(arming()) -> kprof_tracer:kind().
kind(#arming{tracer = Tracer}) ->
    case kprof_tracer:port(Tracer) of
        none -> native;
        _ -> port
    end.

%% @doc Whether it is told of the messages that processes take ({@link
%% kprof_tracer:take_messages/1}).
-spec takes(arming()) -> boolean().
takes(#arming{takes = Takes}) ->
    Takes =:= true.

%% @doc Whether somebody else has become the node's system tracer since the last time: then it is
%% told of no messages any more, and a line says so.
-spec messages_lost(arming()) -> no | {lost, Line :: string(), arming()}.
messages_lost(#arming{takes = true, tracer = Tracer} = A0) ->
    case kprof_tracer:takes_messages(Tracer) of
        true ->
            no;
        Other ->
            A = A0#arming{takes = Other},
            [Line] = warnings(A),
            {lost, Line, A}
    end;
messages_lost(_) ->
    no.

%% @doc A line of text when it does not trace to what was wanted.
-spec warnings(arming()) -> [string()].
warnings(#arming{instead = none, takes = {other, Other}}) ->
    [
        lists:flatten(
            io_lib:format(
                "does not see which messages processes take, as ~ts the node's system tracer "
                "(seq_trace): behind pools, locks and processes without tiers it may be unclear "
                "for which request they work, and waiting is estimated",
                [
                    case Other of
                        false -> "somebody has taken away";
                        _ -> io_lib:format("~0tp is", [Other])
                    end
                ]
            )
        )
    ];
warnings(#arming{instead = none}) ->
    [];
warnings(#arming{instead = Why}) ->
    [lists:flatten(io_lib:format("traces to a port, not by the native tracer: ~ts", [Why]))].

%% @doc Opens what is traced to and the way from it to the collector, on which `Counted' counts
%% bytes. Nothing is traced yet. Where the native tracer is wanted and cannot be had it is a trace
%% port from now on, and {@link warnings/1} says why.
-spec open(kprof_control:control(), counters:counters_ref(), arming()) ->
    {ok, arming()} | {error, term()}.
open(Control, Counted, #arming{tracer = undefined, wanted = Wanted, instead = none} = A) when
    Wanted =/= port
->
    case native(Wanted) of
        {ok, Tracer, In} -> connect(Control, Counted, Tracer, In, A);
        {error, Why} -> open(Control, Counted, instead(Why, A))
    end;
open(Control, Counted, #arming{tracer = undefined} = A) ->
    case kprof_tracer:open(port) of
        {ok, Tracer, In} -> connect(Control, Counted, Tracer, In, A);
        {error, _} = Error -> Error
    end.

native(auto) ->
    case kprof_vm:was_tried() of
        true -> native(native);
        false -> {error, "it was not tried on this release of OTP"}
    end;
native(native) ->
    case kprof_library:load() of
        ok -> kprof_tracer:open(native);
        {error, _} = Error -> Error
    end.

instead(Why, A0) ->
    A = A0#arming{instead = Why},
    lists:foreach(fun(Line) -> logger:warning("kprof: ~ts", [Line]) end, warnings(A)),
    A.

connect(Control, Counted, Tracer, In, A) ->
    case kprof_control:open_data(Control, 0) of
        {ok, Out} ->
            Relay = kprof_relay:start_link(In, Out, Counted),
            {ok, taking(A#arming{tracer = Tracer, relay = Relay})};
        {error, _} = Error ->
            kprof_tracer:close(Tracer, now),
            Error
    end.

taking(#arming{tracer = Tracer, takes = Before} = A0) ->
    A = A0#arming{takes = kprof_tracer:take_messages(Tracer)},
    _ =
        A#arming.takes =/= Before andalso
            lists:foreach(fun(Line) -> logger:warning("kprof: ~ts", [Line]) end, warnings(A)),
    A.

%% @doc Sets everything. `Also' are processes that are not traced, besides those that an arming
%% knows.
-spec set(kprof_tiers:tiers(), [pid()], arming()) -> ok.
set(Tiers, Also, #arming{tracer = Tracer} = A) ->
    Patterns = kprof_tiers:patterns(Tiers),
    % before anything is set
    ok = kprof_guard:arm(Tracer, Patterns, pace(Tiers)),
    kprof_tracer:set_patterns(Tracer, Patterns),
    ok = kprof_guard:is_set(Tracer),
    set_flags(Tiers, Also, A).

pace(Tiers) ->
    case kprof_tiers:list(Tiers) of
        [] -> calm;
        _ -> busy
    end.

%% @doc Sets the flags alone.
-spec set_flags(kprof_tiers:tiers(), [pid()], arming()) -> ok.
set_flags(Tiers, Also, #arming{tracer = Tracer} = A) ->
    kprof_tracer:set_flags(Tracer, kprof_tiers:flags(Tiers), own(Also, A)).

%% @doc The processes that are not traced: the shim's own, and `Also'.
-spec processes([pid()], arming()) -> [pid()].
processes(Also, #arming{tracer = undefined}) -> Also;
processes(Also, A) -> own(Also, A).

own(Also, #arming{tracer = Tracer, relay = Relay}) ->
    Also ++ kprof_relay:processes(Relay) ++
        [
            P
         || P <- [self(), kprof_tracer:keeper(Tracer), whereis(kprof_guard), whereis(kprof_sup)],
            is_pid(P)
        ].

%% @doc Sets what is another after a change, and takes off what is gone.
-spec change(kprof_tiers:tiers(), kprof_tiers:tiers(), [pid()], arming()) -> ok.
change(_, _, _, #arming{tracer = undefined}) ->
    ok;
change(Before, After, Also, #arming{tracer = Tracer} = A) ->
    {Olds, News} = {kprof_tiers:patterns(Before), kprof_tiers:patterns(After)},
    % first: it sets again what it misses
    ok = kprof_guard:update(News, pace(After)),
    kprof_tracer:undo_patterns(Tracer, [
        Old
     || {MFA, _} = Old <- Olds, not lists:keymember(MFA, 1, News)
    ]),
    kprof_tracer:set_patterns(Tracer, News -- Olds),
    ok = kprof_guard:is_set(Tracer),
    _ =
        kprof_tiers:flags(After) =/= kprof_tiers:flags(Before) andalso
            kprof_tracer:no_return_to(Tracer, own(Also, A)),
    kprof_guard:yield(Tracer, News).

%% @doc Undoes all that is set. The guard undoes; when it is not there (it died, and we are being
%% taken down after it) we do it ourselves.
-spec disarm(kprof_tiers:tiers(), arming()) -> ok.
disarm(_, #arming{tracer = undefined}) ->
    ok;
disarm(Tiers, #arming{tracer = Tracer}) ->
    try
        kprof_guard:disarm()
    catch
        exit:_ -> kprof_tracer:undo(Tracer, kprof_tiers:patterns(Tiers))
    end.

%% @doc Delivers what is on its way, counts it after some seconds, and closes everything. To be
%% disarmed before.
-spec drain(arming()) -> arming().
drain(#arming{tracer = Tracer, relay = Relay} = A) when Tracer =/= undefined, Relay =/= undefined ->
    kprof_tracer:close(Tracer, drain),
    ok = kprof_relay:drain(Relay, ?DRAIN_MS),
    over(Tracer, Relay, A#arming{tracer = undefined, relay = undefined});
drain(A) ->
    close(finish(A)).

%% @doc Undoes and closes everything at once. What is on its way is counted, but nobody waits for
%% that.
-spec drop(kprof_tiers:tiers(), arming()) -> arming().
drop(Tiers, A) ->
    ok = disarm(Tiers, A),
    give_up(behind(A)).

give_up(#arming{draining = {_, Relay}} = A) ->
    ok = kprof_relay:give_up(Relay),
    A;
give_up(A) ->
    A.

%% @doc The guard has tripped and undone everything: what is in the port is still delivered, but
%% nobody waits for it.
-spec tripped(arming()) -> arming().
tripped(A) ->
    behind(A).

%% Has the port of what is undone emptied behind our back.
behind(#arming{tracer = Tracer, relay = Relay} = A) when
    Tracer =/= undefined, Relay =/= undefined
->
    _ = spawn(fun() ->
        kprof_tracer:close(Tracer, drain),
        kprof_relay:drain(Relay)
    end),
    A#arming{tracer = undefined, relay = undefined, draining = {Tracer, Relay}};
behind(A) ->
    close(A).

%% Without a relay there is nobody who could count.
close(#arming{tracer = undefined} = A) ->
    A;
close(#arming{tracer = Tracer} = A) ->
    kprof_tracer:close(Tracer, now),
    A#arming{tracer = undefined}.

%% @doc Delivers no more of what was to be delivered behind our back, and waits until it is counted.
-spec finish(arming()) -> arming().
finish(#arming{draining = {Tracer, Relay}} = A) ->
    ok = kprof_relay:finish(Relay),
    over(Tracer, Relay, A#arming{draining = undefined});
finish(A) ->
    A.

over(Tracer, Relay, A) ->
    kprof_tracer:close(Tracer, now),
    A#arming{total = kprof_relay:total(Relay)}.

%% @doc What a message that the owner got means here.
-spec event(term(), arming()) -> {lost, Why :: unicode:chardata()} | none.
event({kprof_relay, Pid, Why}, #arming{relay = Relay}) ->
    case is_relay(Pid, Relay) of
        true -> {lost, io_lib:format("the data connection ended (~0tp)", [Why])};
        false -> none
    end;
event(_, _) ->
    none.

%% @doc A linked process or port has ended: what that means here.
-spec ended(pid() | port(), term(), arming()) ->
    {drained, arming()} | {lost, Why :: unicode:chardata(), arming()} | none.
ended(Pid, Why, #arming{relay = Relay, draining = Draining} = A) when is_pid(Pid) ->
    case is_relay(Pid, Relay) of
        true ->
            {lost, io_lib:format("the relay ended (~0tp)", [Why]), A#arming{
                relay = undefined, total = kprof_relay:total(Relay)
            }};
        false when Draining =/= undefined ->
            {Tracer, Drained} = Draining,
            case is_relay(Pid, Drained) of
                true -> {drained, over(Tracer, Drained, A#arming{draining = undefined})};
                false -> none
            end;
        false ->
            none
    end;
ended(Port, Why, #arming{tracer = Tracer} = A) when Tracer =/= undefined ->
    case kprof_tracer:port(Tracer) of
        Port -> {lost, io_lib:format("the trace port ended (~0tp)", [Why]), A};
        _ -> none
    end;
ended(_, _, _) ->
    none.

is_relay(_, undefined) -> false;
is_relay(Pid, Relay) -> kprof_relay:pid(Relay) =:= Pid.

%% @doc How many messages the trace port that is open has given so far.
-spec messages(arming()) -> non_neg_integer().
messages(#arming{relay = undefined}) -> 0;
messages(#arming{relay = Relay}) -> element(1, kprof_relay:total(Relay)).

%% @doc Where messages are counted that belong to the trace, but do not come from its port. Without
%% a relay nobody asks for them any more.
-spec counter(arming()) -> counters:counters_ref().
counter(#arming{relay = undefined}) -> counters:new(2, []);
counter(#arming{relay = Relay}) -> kprof_relay:counter(Relay).

%% @doc How many messages the last trace port gave, once that is closed and until it is {@link
%% told/1}.
-spec total(arming()) -> none | total().
total(#arming{total = Total}) ->
    Total.

%% @doc The collector has been told.
-spec told(arming()) -> arming().
told(A) ->
    A#arming{total = none}.
