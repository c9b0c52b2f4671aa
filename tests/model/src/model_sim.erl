%% SPDX-License-Identifier: Apache-2.0
%% Runs a plan on a simulated node: processes with mailboxes, stacks and sequential trace tokens as
%% the VM has them, one step after the other in order of time. Tells what happened (spans,
%% requests), and what a real node would have sent about it (events).
%%
%% Tokens, as in the VM: who sends or spawns becomes the token's From, and counts its clock up; who
%% receives has the message's token, or none when it came without, and a clock that is no less than
%% the message's serial; a spawned process shows itself as From; timers, and tables that are given
%% away, change nothing.
%%
%% A cause is the request that a process' work is really for, whatever its label says. A message
%% brings it along, and so does a spawn; an answer does not change it.
-module(model_sim).

-export([run/1, mfa/1, base/0]).

-include("model.hrl").

%% state: run (a step is on its way) | idle | {gather, Missing} | dead
%% stack: open spans, innermost first. silent: spans that are over right now and no message has told
%% so yet, innermost first, each with whether it raised. k: what is still to be done, operations and
%% frames:
%%   {frame, Spans, Caller, Function}   a function's; its spans (after tail calls more than one, the
%%                                      last called first)
%%   {'catch', Then}, {ended, RequestId, How}, {reply, To, Worker}, {lender, What, Who, Worker},
%%   {cause, Cause}
%% lent: workers that it has of lenders, the latest first. helper: a process of its own. lender:
%% what it lends out and who waits for it.
-record(proc, {
    id,
    pid,
    token = none,
    clock = 0,
    heard = 0,
    cause = none,
    lent = [],
    helper = none,
    lender = none,
    k = [],
    mbox = [],
    state = run,
    server = false,
    base,
    stack = [],
    gc_armed = false,
    exit_armed = false,
    out = none,
    silent = [],
    % {Message, Waited} of the message that it works at, and of those that had brought it that one
    brought = []
}).

-record(world, {
    plan,
    now = 0,
    last = 0,
    queue = gb_sets:new(),
    number = 0,
    procs = #{},
    names = #{},
    labels = #{},
    spans = #{},
    requests = #{},
    events = []
}).

%% free: what may be lent now. values: keys => value | the processes that wait for it.
-record(lender, {way, free = [], waiting = [], values = #{}}).
% heard: the serial of the message that the sender had got last
% of a message: when it was sent, and the messages that had brought its sender what it was at
-record(token, {label, from, serial = 0, heard = 0, sent = none, brought = []}).

-define(NODE, 'model@127.0.0.1').
-define(SMALL, ((1 bsl 60) - 1)).
-define(WORD, ((1 bsl 64) - 1)).

%% @doc What is added to the events' times in the messages: the VM's monotonic time is negative.
base() -> -576460741827463552.

%% @doc A tier's function.
mfa(Tier) -> {list_to_atom("app_" ++ atom_to_list(Tier)), run, 1}.

%% @doc Spans and requests by number, and the events in order of time.
-spec run(map()) -> {#{integer() => #span{}}, #{integer() => #req{}}, [#event{}]}.
run(#{clients := Clients, lenders := Lenders} = Plan) ->
    Served = lists:foldl(
        fun({Name, _}, W) -> named(Name, none, W) end, #world{plan = Plan}, model_plan:servers()
    ),
    W0 = lists:foldl(fun new_lender/2, Served, Lenders),
    W = lists:foldl(
        fun({Start, Program}, W1) ->
            {P, W2} = new_proc(W1),
            later(
                Start,
                {step, P#proc.id},
                put_proc(P#proc{k = Program, base = {client, init, 1}}, W2)
            )
        end,
        W0,
        Clients
    ),
    #world{spans = Spans, requests = Requests, events = Events} = loop(W),
    {Spans, maps:map(fun(_, R) -> entered(R, Spans) end, Requests), lists:reverse(Events)}.

%% The end of a request that begins with an entry is the return of that.
entered(#req{root = none} = R, _) ->
    R;
entered(#req{root = Root} = R, Spans) ->
    case maps:get(Root, Spans) of
        #span{stop = open} -> R;
        #span{stop = Stop, error = Error} -> R#req{stop = Stop, error = Error, stop_pid = R#req.pid}
    end.

loop(#world{queue = Queue} = W) ->
    case gb_sets:is_empty(Queue) of
        true ->
            W;
        false ->
            {{Time, _, What}, Rest} = gb_sets:take_smallest(Queue),
            loop(happens(What, W#world{queue = Rest, now = Time}))
    end.

happens({step, Id}, W) ->
    case proc(Id, W) of
        #proc{state = dead} -> W;
        P -> step(P, W)
    end;
happens({message, To, Message}, W) ->
    case proc(To, W) of
        #proc{state = dead} ->
            W;
        #proc{mbox = Mbox, state = State} = P ->
            P1 = P#proc{mbox = Mbox ++ [Message]},
            case State of
                idle ->
                    later(wake_time(W), {step, To}, put_proc(P1#proc{state = run}, W));
                {gather, _} when element(1, Message) =:= reply ->
                    later(wake_time(W), {take_replies, To}, put_proc(P1, W));
                _ ->
                    put_proc(P1, W)
            end
    end;
happens({take_replies, Id}, W) ->
    case proc(Id, W) of
        #proc{state = {gather, Missing}} = P -> take_replies(P, Missing, W);
        _ -> W
    end;
happens({kill, Id}, W) ->
    case proc(Id, W) of
        #proc{state = dead} ->
            W;
        % as from OTP 27 on
        #proc{exit_armed = true, stack = Stack} = P when map_get(quiet, W#world.plan) ->
            {Time, W1} = emit(P, out_exited, [], [0], W),
            put_proc(P#proc{state = dead}, ended([{Id1, true} || Id1 <- Stack], Time, W1));
        P ->
            die(P, {exit, killed}, W)
    end.

%% Until a process that got a message runs: some µs, and now and then much more.
wake_time(#world{number = N}) ->
    case erlang:phash2(N, 50) of
        0 -> 300000;
        X -> 500 + 200 * X
    end.

%% -- steps ----------------------------------------------------------------------------------------

step(#proc{k = [], server = true, mbox = []} = P, W) ->
    {P1, W1} = out(P, W),
    put_proc(P1#proc{state = idle}, W1);
step(#proc{k = [], server = true, mbox = [Message | Rest]} = P, W) ->
    {P1, W1} = in(P, W),
    W2 = taken(element(2, Message), P1, W1),
    goes_on(0, brought(Message, take(Message, P1#proc{mbox = Rest}), W2), W2);
step(#proc{k = []} = P, W) ->
    exits(P, W);
step(#proc{k = [Op | K]} = P, W) ->
    op(Op, P#proc{k = K}, W).

goes_on(Ns, P, W) -> later(1 + Ns, {step, P#proc.id}, put_proc(P, W)).

op({work, Ns}, P, W) ->
    goes_on(Ns, P, W);
op({tier, T, Body}, P, W) ->
    call_tier(T, Body, none, P, W);
op(
    {tail, T, Body},
    #proc{k = [{frame, [_ | _] = Spans, Caller, Function} | K], token = #token{}} = P,
    W
) when Caller =/= Function ->
    call_tier(T, Body, {tail, Spans, Caller}, P#proc{k = K}, W);
op({tail, T, Body}, P, W) ->
    call_tier(T, Body, none, P, W);
op({helper, Body}, #proc{k = K} = P, W) ->
    goes_on(10, P#proc{k = Body ++ [helper(K) | K]}, W);
op({frame, [], _, _}, P, W) ->
    goes_on(0, P, W);
op({frame, Spans, Caller, _}, P, W) ->
    {P1, W1} = leave(Spans, return_from, ok, P, W),
    {P2, W2} = return_to(Caller, P1, W1),
    goes_on(0, P2, W2);
op({each, Body}, #proc{k = K} = P, W) ->
    goes_on(10, P#proc{k = Body ++ [{frame, [], undefined, {lists, foreach_1, 2}} | K]}, W);
op({raise, Class}, P, W) ->
    raise(P#proc.k, Class, false, P, W);
op({'catch', Body, Then}, #proc{k = K} = P, W) ->
    goes_on(0, P#proc{k = Body ++ [{'catch', Then}, helper(K) | K]}, W);
op({'catch', _}, P, W) ->
    goes_on(0, P, W);
op({call, Name, Body}, P, W) ->
    gather([{Name, Body}], P, W);
op({cast, Name, Body}, P, W) ->
    {P1, W1} = send(server(Name, W), {work, none, Body}, P, W),
    goes_on(500, P1, W1);
op({gather, Parts}, P, W) ->
    gather(Parts, P, W);
op({spawn, Kind, Body}, P, W) ->
    {P1, _, W1} = spawns(Kind, Body, P, W),
    goes_on(500, P1, W1);
op(bad_spawn, #proc{token = #token{}, k = K} = P, W) ->
    {_, W1} = emit(P, call, about(P, W), [{erlang, spawn_opt, 4}, {token(P)}], W),
    raise(K, error, true, P, W1);
op(bad_spawn, P, W) ->
    raise(P#proc.k, error, false, P, W);
op({hire, Body}, P, W) ->
    {P1, Child, W1} = spawns(spawn_link, [], P, W),
    {P2, W2} = send(
        Child, {work, none, Body}, P1, put_proc((proc(Child, W1))#proc{server = true}, W1)
    ),
    goes_on(500, P2, W2);
op({kill, Body, After}, P, W) ->
    {P1, Child, W1} = spawns(spawn, Body, P, W),
    goes_on(500, P1, later(After, {kill, Child}, W1));
op({timer, Ns, Body}, #proc{server = true} = P, W) ->
    goes_on(100, P, later(Ns, {message, P#proc.id, {timer, Body}}, W));
op({timer, _, _}, P, W) ->
    goes_on(0, P, W);
op(
    serve,
    #proc{server = true, mbox = [{work, _, _, _, _} = Message | Rest], k = K, cause = Cause} = P,
    W
) ->
    #proc{k = Inner} = P1 = take(Message, P#proc{mbox = Rest, k = []}),
    W1 = taken(element(2, Message), P, W),
    goes_on(100, brought(Message, P1#proc{k = Inner ++ [{cause, Cause} | K]}, W1), W1);
op(serve, P, W) ->
    goes_on(0, P, W);
op({cause, Cause}, P, W) ->
    goes_on(0, P#proc{cause = Cause}, W);
op(send, P, W) ->
    goes_on(100, sends(P), W);
op(lose, P, W) ->
    goes_on(1000, P#proc{token = none}, W);
op({plain, Body}, #proc{k = K} = P, W) ->
    goes_on(0, P#proc{token = none, k = Body ++ K}, W);
op({finish, Outcome}, P, W) ->
    end_marker(P, Outcome, W);
op({gc, Kind, Ns}, P, W) ->
    paused(
        #span.gc,
        list_to_atom(atom_to_list(Kind) ++ "_start"),
        list_to_atom(atom_to_list(Kind) ++ "_end"),
        gc,
        Ns,
        P,
        W
    );
op({off, Ns}, P, W) ->
    paused(#span.off, out, in, sched, Ns, P, W);
op({request, Label, Identity, _, entry, Body}, P, W) ->
    enters(Label, Identity, Body, P, W);
op({ended, _, entry}, P, W) ->
    goes_on(0, P#proc{cause = none}, W);
op({request, Label, Identity, Named, How, Body}, P, W) ->
    begins(Label, Identity, Named, How, Body, P, W);
op({ended, Id, apply}, P, W) ->
    apply_ends(Id, ok, P#proc{cause = none}, W);
op({ended, _, set}, #proc{token = none} = P, W) ->
    goes_on(0, P, W);
op({ended, _, set}, P, W) ->
    end_marker(P, ok, W);
op({ended, _, leave}, P, W) ->
    goes_on(0, P, W);
op({reply, To, Answer}, P, W) ->
    {P1, W1} = send(To, {reply, Answer}, P, W),
    goes_on(200, P1, W1);
op({lend, Name, Inside, Body}, #proc{id = Id, k = K} = P, W) ->
    {P1, W1} = send(server(Name, W), {ask, out, Id, none, Inside}, P, W),
    waits(1, P1#proc{k = [{'catch', Body, []}, {give, Name, Inside} | K]}, W1);
op({cached, Name, Key, Inside, Body}, #proc{id = Id, k = K} = P, W) ->
    {P1, W1} = send(server(Name, W), {ask, look_up, Id, Key, Inside}, P, W),
    waits(1, P1#proc{k = [{work_out, Name, Key, Inside, Body} | K]}, W1);
op({answer, work}, #proc{k = [{work_out, Name, Key, Inside, Body} | K]} = P, W) ->
    goes_on(0, P#proc{k = [{'catch', Body, []}, {put, Name, Key, Inside} | K]}, W);
op({answer, value}, #proc{k = [{work_out, _, _, _, _} | K]} = P, W) ->
    goes_on(0, P#proc{k = K}, W);
op({answer, {worker, Worker}}, #proc{lent = Lent} = P, W) ->
    goes_on(0, P#proc{lent = [Worker | Lent]}, W);
op({give, Name, Inside}, #proc{id = Id, lent = [Worker | Lent]} = P, W) ->
    gives(Name, {ask, in, Id, Worker, Inside}, P#proc{lent = Lent}, W);
op({put, Name, Key, Inside}, #proc{id = Id} = P, W) ->
    gives(Name, {ask, put, Id, Key, Inside}, P, W);
op({ask, Body}, #proc{lent = [Worker | _]} = P, W) when is_integer(Worker) ->
    gather([{{proc, Worker}, Body}], P, W);
op({ask, _}, P, W) ->
    goes_on(0, P, W);
op({lender, What, Who, Arg}, P, W) ->
    {P1, W1} = lender(What, Who, Arg, P, W),
    goes_on(200, P1, W1);
op({own, Body}, #proc{helper = none} = P, W) ->
    {#proc{id = Helper} = New, W1} = new_proc(W),
    W2 = put_proc(New#proc{server = true, state = idle, base = {helper, loop, 0}}, W1),
    op({own, Body}, P#proc{helper = Helper}, W2);
op({own, Body}, #proc{helper = Helper} = P, W) ->
    gather([{{proc, Helper}, Body}], P, W).

%% What the native tracer tells of that.
taken(#token{} = Token, P, #world{plan = #{taken := true}} = W) ->
    element(2, emit(P, taken, [], [token(P#proc{token = Token})], W));
taken(_, _, W) ->
    W.

%% What a message has waited, which is that process' work from now on. A timer brings nothing.
brought({timer, _}, P, _) ->
    P;
brought(Message, P, #world{last = Taken}) ->
    case element(2, Message) of
        #token{label = Label, from = From, serial = Serial, sent = Sent, brought = Before} when
            Sent =/= none
        ->
            P#proc{brought = [{{Label, From, Serial, Sent}, Taken - Sent} | Before]};
        _ ->
            P#proc{brought = []}
    end.

%% A call that nothing is open below has been brought by them.
claims(Request, #proc{stack = [], brought = Brought}, #world{requests = Requests} = W) when
    is_map_key(Request, Requests)
->
    #{Request := #req{waited = Waited} = R} = Requests,
    All = maps:merge(Waited, maps:from_list(Brought)),
    W#world{requests = Requests#{Request := R#req{waited = All}}};
claims(_, _, W) ->
    W.

%% A server takes a message, and catches what its work raises.
take({timer, Body}, #proc{k = K} = P) ->
    P#proc{k = [{'catch', Body, []} | K]};
take({work, Token, Cause, To, Body}, #proc{k = K} = P) ->
    (receives(Token, P))#proc{
        cause = Cause, k = [{'catch', Body, []} | [{reply, To, none} || To =/= none] ++ K]
    };
take({ask, Token, Cause, What, Who, Arg, Inside}, #proc{k = K} = P) ->
    (receives(Token, P))#proc{
        cause = Cause, k = [{'catch', Inside, []}, {lender, What, Who, Arg} | K]
    }.

%% -- lenders --------------------------------------------------------------------------------------

%% A pool of as many workers, or, with none, a lock, or a cache. Where tables stand for its workers,
%% nothing carries a token.
new_lender({Name, Way, Workers}, W) ->
    {Ids, W1} = lists:mapfoldl(
        fun(_, V) ->
            #world{names = #{worker := Id}} = V1 = named(worker, none, V),
            {Id, V1}
        end,
        W,
        lists:seq(1, Workers)
    ),
    named(
        Name,
        #lender{
            way = Way,
            free =
                case Ids of
                    [] -> [lock];
                    _ -> Ids
                end
        },
        W1
    ).

lender(out, Who, _, #proc{lender = #lender{free = [], waiting = Waiting} = L} = P, W) ->
    {P#proc{lender = L#lender{waiting = Waiting ++ [Who]}}, W};
lender(out, Who, _, #proc{lender = #lender{free = [Worker | Free]} = L} = P, W) ->
    hands(Who, Worker, P#proc{lender = L#lender{free = Free}}, W);
lender(in, _, Worker, #proc{lender = #lender{free = Free, waiting = []} = L} = P, W) ->
    {P#proc{lender = L#lender{free = Free ++ [Worker]}}, W};
lender(in, _, Worker, #proc{lender = #lender{waiting = [Who | Waiting]} = L} = P, W) ->
    hands(Who, Worker, P#proc{lender = L#lender{waiting = Waiting}}, W);
lender(look_up, Who, Key, #proc{lender = #lender{values = Values} = L} = P, W) ->
    case Values of
        #{Key := value} ->
            send(Who, {reply, value}, P, W);
        #{Key := Waiting} ->
            {P#proc{lender = L#lender{values = Values#{Key := Waiting ++ [Who]}}}, W};
        #{} ->
            send(Who, {reply, work}, P#proc{lender = L#lender{values = Values#{Key => []}}}, W)
    end;
lender(put, _, Key, #proc{lender = #lender{values = Values} = L} = P, W) ->
    #{Key := Waiting} = Values,
    lists:foldl(
        fun(Who, {Q, V}) -> send(Who, {reply, value}, Q, V) end,
        {P#proc{lender = L#lender{values = Values#{Key := value}}}, W},
        Waiting
    ).

hands(Who, Worker, #proc{lender = #lender{way = holder}} = P, W) ->
    {P, later(2000, {message, Who, {reply, keep, none, {worker, Worker}}}, W)};
hands(Who, Worker, P, W) ->
    send(Who, {reply, {worker, Worker}}, P, W).

gives(Name, Message, P, #world{procs = Procs} = W) ->
    Id = server(Name, W),
    case Procs of
        #{Id := #proc{lender = #lender{way = holder}}} ->
            [Kind | Rest] = tuple_to_list(Message),
            goes_on(
                500,
                P,
                later(2000, {message, Id, list_to_tuple([Kind, keep, P#proc.cause | Rest])}, W)
            );
        _ ->
            {P1, W1} = send(Id, Message, P, W),
            goes_on(500, P1, W1)
    end.

%% An untraced function, another one at every depth: control that goes back to it goes back to one
%% place only.
helper(K) -> {frame, [], undefined, {helper, list_to_atom("f" ++ integer_to_list(length(K))), 0}}.

%% -- calls and returns ----------------------------------------------------------------------------

% no message: the match specification wants a token
call_tier(T, Body, _, #proc{token = none, k = K} = P, W) ->
    goes_on(100, P#proc{gc_armed = false, k = Body ++ [{frame, [], undefined, mfa(T)} | K]}, W);
call_tier(T, Body, Tail, #proc{token = #token{from = From}, k = K, stack = Stack} = P, W) ->
    {Spans, Caller} =
        case Tail of
            {tail, Above, Same} -> {Above, Same};
            none -> {[], function(P)}
        end,
    Request = whose(P, W),
    Name =
        case W#world.requests of
            #{Request := #req{identity = Identity, named = call}} -> Identity;
            _ -> undefined
        end,
    Note =
        case model_plan:returns(T) of
            none -> {token(P), Caller, Name, none};
            whole -> {token(P), Name}
        end,
    {Time, W1} = emit(P, call, about(P, W), [mfa(T), Note], W),
    Id = map_size(W1#world.spans),
    Span = #span{
        id = Id,
        req = Request,
        pid = P#proc.id,
        tier = T,
        start = Time,
        from = From,
        caller = Caller,
        below =
            case Stack of
                [] -> none;
                [Below | _] -> Below
            end
    },
    Spans1 = (W1#world.spans)#{Id => Span},
    W2 = claims(Request, P, acts(Request, P#proc.id, Time, W1#world{spans = Spans1})),
    Exiting = P#proc.exit_armed orelse model_plan:returns(T) =:= none,
    Then = Body ++ [{frame, [Id | Spans], Caller, mfa(T)} | K],
    goes_on(100, P#proc{gc_armed = true, exit_armed = Exiting, stack = [Id | Stack], k = Then}, W2).

%% The function that is running.
function(#proc{k = K, base = Base}) -> function(K, Base).

function([{frame, _, _, Function} | _], _) -> Function;
function([{ended, _, apply} | _], _) -> {kprof, do_apply, 3};
function([_ | K], Base) -> function(K, Base);
function([], Base) -> Base.

%% Spans end, innermost first. What has no return value ends with the next message that tells of it.
leave(Spans, Kind, Value, P, W) ->
    lists:foldl(fun(Id, {P1, W1}) -> leave_one(Id, Kind, Value, P1, W1) end, {P, W}, Spans).

leave_one(Id, Kind, Value, #proc{stack = Stack, silent = Silent} = P, W) ->
    #span{tier = T} = maps:get(Id, W#world.spans),
    P1 = P#proc{stack = lists:delete(Id, Stack)},
    case model_plan:returns(T) of
        none ->
            {P1#proc{silent = Silent ++ [{Id, Kind =:= exception_from}]}, W};
        whole ->
            {Time, W1} = emit(P, Kind, [], [mfa(T), Value], W),
            {P1#proc{silent = []}, ended(Silent ++ [{Id, Kind =:= exception_from}], Time, W1)}
    end.

ended(Ended, Time, W) ->
    lists:foldl(
        fun({Id, Error}, #world{spans = Spans} = W1) ->
            #{Id := #span{req = Request, pid = Pid} = Span} = Spans,
            acts(Request, Pid, Time, W1#world{
                spans = Spans#{Id := Span#span{stop = Time, error = Error}}
            })
        end,
        W,
        Ended
    ).

%% Control is back in a function: told in every process while some tier has no return values.
return_to(Function, #proc{silent = Silent} = P, #world{plan = #{none := true}} = W) ->
    {Time, W1} = emit(P, return_to, [], [Function], W),
    {P#proc{silent = []}, ended(Silent, Time, W1)};
return_to(_, P, W) ->
    {P, W}.

%% -- exceptions -----------------------------------------------------------------------------------

%% Goes through the frames. Passed: whether the last one was traced: then, and only then, return_to
%% tells where control is now (next_catch in beam_common.c). What else ended has ended in silence,
%% now.
raise([], Class, _, P, W) ->
    die(P#proc{k = []}, {Class, oops}, W);
raise([{frame, Spans, _, _} | K], Class, _, P, W) ->
    {P1, W1} = leave(Spans, exception_from, {Class, oops}, P, W),
    raise(K, Class, Spans =/= [], P1, W1);
raise([{'catch', Then} | K], _, Passed, P, W) ->
    {P1, W1} = caught(Passed, P#proc{k = K}, W),
    goes_on(100, P1#proc{k = Then ++ K}, W1);
raise([{ended, Id, apply} = Frame | K], Class, Passed, P, W) ->
    {P1, W1} = caught(Passed, P#proc{k = [Frame | K]}, W),
    apply_ends(Id, Class, P1#proc{k = [{raise, Class} | K]}, W1);
raise([_ | K], Class, Passed, P, W) ->
    raise(K, Class, Passed, P, W).

caught(true, P, W) ->
    return_to(function(P), P, W);
caught(false, #proc{silent = Silent} = P, #world{now = Now, last = Last} = W) ->
    {P#proc{silent = []}, ended(Silent, max(Now, Last), W)}.

%% A process dies: of an exception, of a kill, or of being done. This is told only of processes that
%% began a request, or called what has no return value.
die(#proc{k = K} = P, Reason, W) ->
    {P1, W1} = leave(
        lists:append([Spans || {frame, Spans, _, _} <- K]), exception_from, Reason, P, W
    ),
    exits(P1#proc{k = []}, W1).

exits(#proc{exit_armed = false} = P, W) ->
    put_proc(P#proc{state = dead}, W);
exits(#proc{silent = Silent} = P, W) ->
    {Time, W1} = emit(P, out_exited, [], [0], W),
    put_proc(P#proc{state = dead, silent = []}, ended(Silent, Time, W1)).

%% -- requests -------------------------------------------------------------------------------------

begins(
    Wanted, Identity, Named, How, Body, #proc{id = Pid, k = K} = P, #world{requests = Requests} = W
) ->
    Label = usable(Wanted, W),
    Id = map_size(Requests),
    P1 = (labelled(Label, P))#proc{cause = Id, gc_armed = true, exit_armed = true},
    {Time, W1} = emit(
        P1,
        call,
        [Id],
        [
            {kprof_mark, request_begin, 1},
            {
                token(P1),
                case Named of
                    mark -> Identity;
                    call -> undefined
                end
            }
        ],
        W
    ),
    R = #req{
        id = Id,
        label = Label,
        identity = Identity,
        named = Named,
        start = Time,
        pid = Pid,
        acts = [{Pid, Time}]
    },
    {P2, W2} = return_to({kprof, set_token, 1}, P1, W1#world{
        requests = Requests#{Id => R}, labels = (W1#world.labels)#{Label => Id}
    }),
    goes_on(
        case Label of
            Wanted -> 100;
            _ -> 2 * ?DISORDER
        end,
        P2#proc{k = Body ++ [{ended, Id, How} | K]},
        W2
    ).

%% A request that begins with the call of an entry.
enters(
    Label,
    Identity,
    Body,
    #proc{id = Pid, k = K, stack = Stack} = P,
    #world{requests = Requests, spans = Spans, labels = Labels} = W
) ->
    Id = map_size(Requests),
    Root = map_size(Spans),
    Entry = model_plan:entry(),
    Caller = function(P),
    #proc{token = #token{from = From}} =
        P1 = (labelled(Label, P))#proc{cause = Id, gc_armed = true, exit_armed = true},
    {Time, W1} = emit(P1, call, [Id], [mfa(Entry), {token(P1), entry, Identity}], W),
    Span = #span{
        id = Root,
        req = Id,
        pid = Pid,
        tier = Entry,
        start = Time,
        from = From,
        caller = Caller,
        below =
            case Stack of
                [] -> none;
                [Below | _] -> Below
            end
    },
    R = #req{
        id = Id,
        label = Label,
        identity = Identity,
        named = mark,
        start = Time,
        pid = Pid,
        root = Root,
        acts = [{Pid, Time}]
    },
    goes_on(
        100,
        P1#proc{
            stack = [Root | Stack],
            k = Body ++ [{frame, [Root], Caller, mfa(Entry)}, {ended, Id, entry} | K]
        },
        W1#world{
            requests = Requests#{Id => R},
            spans = Spans#{Root => Span},
            labels = Labels#{Label => Id}
        }
    ).

%% A label may be used again when nobody has it any more, and nothing under it is on its way. (What
%% overtakes the begin in the stream is taken for the earlier request's, so the new one is quiet at
%% first. The shim uses no label twice.)
usable({reuse, N}, #world{
    labels = Labels, requests = Requests, procs = Procs, queue = Queue, now = Now
}) when map_size(Labels) > 0 ->
    All = lists:sort(maps:keys(Labels)),
    Label = lists:nth(N rem length(All) + 1, All),
    Held = fun
        (#token{label = Of}) -> Of =:= Label;
        (none) -> false
    end,
    Waiting = fun
        ({_, _, {message, _, Message}}) ->
            is_tuple(Message) andalso
                lists:any(
                    fun
                        (#token{label = L}) -> L =:= Label;
                        (_) -> false
                    end,
                    tuple_to_list(Message)
                );
        (_) ->
            false
    end,
    #req{stop = Stop, acts = [{_, Latest} | _]} = maps:get(maps:get(Label, Labels), Requests),
    Free =
        is_integer(Stop) andalso Now > max(Stop, Latest) + 2 * ?DISORDER andalso
            not lists:any(
                fun
                    (#proc{state = dead}) -> false;
                    (#proc{token = Token, mbox = Mbox}) -> Held(Token) orelse Mbox =/= []
                end,
                maps:values(Procs)
            ) andalso
            not lists:any(Waiting, gb_sets:to_list(Queue)),
    case Free of
        true -> Label;
        false -> {again, N, Now}
    end;
usable(Label, _) ->
    Label.

%% do_apply's end: when the token has gone in between, or is another one now, it says so.
apply_ends(Id, Outcome, #proc{token = Token} = P, #world{requests = Requests} = W) ->
    #{Id := #req{label = Label}} = Requests,
    case Token of
        #token{label = Label} ->
            end_marker(P, Outcome, W);
        #token{label = Other} ->
            end_marker(labelled(Label, P), {Outcome, {token_changed, Other}}, W);
        none ->
            end_marker(labelled(Label, P), {Outcome, token_lost}, W)
    end.

end_marker(#proc{token = none} = P, _, W) ->
    goes_on(0, P, W);
end_marker(#proc{token = #token{label = Label}} = P, Outcome, W) ->
    Id = maps:get(Label, W#world.labels),
    {Time, #world{requests = Requests} = W1} = emit(
        P, call, [Id], [{kprof_mark, request_end, 1}, {token(P), Outcome}], W
    ),
    #{Id := #req{stop = Before} = R} = Requests,
    % of several the first
    Ended =
        case Before of
            none -> R#req{stop = Time, error = bad(Outcome), stop_pid = P#proc.id};
            _ -> R
        end,
    {P1, W2} = return_to({kprof, clear_token, 0}, P, W1#world{requests = Requests#{Id := Ended}}),
    goes_on(100, P1#proc{token = none, gc_armed = false}, W2).

bad({Outcome, _}) -> bad(Outcome);
bad(Outcome) -> Outcome =/= ok.

acts(none, _, _, W) ->
    W;
acts(Id, Pid, Time, #world{requests = Requests} = W) ->
    #{Id := R} = Requests,
    W#world{requests = Requests#{Id := R#req{acts = [{Pid, Time} | R#req.acts]}}}.

%% -- processes and messages -----------------------------------------------------------------------

gather(Parts, P, W) ->
    {P1, W1} = lists:foldl(
        fun
            ({spawn, Body}, {Q, V}) ->
                {Q1, _, V1} = spawns(spawn, [{'catch', Body, []}, {reply, Q#proc.id, none}], Q, V),
                {Q1, V1};
            ({Name, Body}, {Q, V}) ->
                send(server(Name, V), {work, Q#proc.id, Body}, Q, V)
        end,
        {P, W},
        Parts
    ),
    waits(length(Parts), P1, W1).

waits(Missing, P, W) ->
    {P1, W1} = out(P, W),
    put_proc(P1#proc{state = {gather, Missing}}, W1).

take_replies(#proc{mbox = Mbox} = P, Missing, W) ->
    case lists:keytake(reply, 1, Mbox) of
        false ->
            put_proc(P, W);
        {value, {reply, Token, _, Worker}, Rest} ->
            {P1, W0} = in(P, W),
            W1 = taken(Token, P1, W0),
            P2 = answered(Worker, receives(Token, P1#proc{mbox = Rest})),
            case Missing of
                1 ->
                    goes_on(0, P2#proc{state = run}, W1);
                _ ->
                    {P3, W2} = out(P2#proc{state = {gather, Missing - 1}}, W1),
                    take_replies(P3, Missing - 1, W2)
            end
    end.

answered(none, P) -> P;
answered(Answer, #proc{k = K} = P) -> P#proc{k = [{answer, Answer} | K]}.

%% A message brings the sender's token and its cause along: {Kind, Token, Cause, ...}.
send(To, Message, P, W) ->
    #proc{cause = Cause} = P1 = sends(P),
    {Token, W1} = sent(P1, W),
    [Kind | Rest] = tuple_to_list(Message),
    {P1, later(2000, {message, To, list_to_tuple([Kind, Token, Cause | Rest])}, W1)}.

%% What the native tracer tells of that, and the message's token.
sent(#proc{token = #token{} = Token, brought = Brought} = P, #world{plan = #{sent := true}} = W) ->
    {Time, W1} = emit(P, sent, [], [token(P)], W),
    {Token#token{sent = Time, brought = Brought}, W1};
sent(#proc{token = Token}, W) ->
    {Token, W}.

%% -- tokens ---------------------------------------------------------------------------------------

%% The sender becomes its token's From. Of the clock's 64 bits a serial has 60.
sends(#proc{token = none} = P) ->
    P;
sends(#proc{token = Token, id = Id, clock = Clock, heard = Heard} = P) ->
    P#proc{
        token = Token#token{from = Id, serial = (Clock + 1) band ?SMALL, heard = Heard band ?SMALL},
        clock = (Clock + 1) band ?WORD
    }.

receives(keep, P) ->
    P;
receives(none, P) ->
    P#proc{token = none};
receives(#token{serial = Serial} = Token, #proc{clock = Clock} = P) ->
    P#proc{token = Token, clock = max(Clock, Serial), heard = Serial}.

%% Another label for the process. A token that it has stays as it is otherwise.
labelled(Label, #proc{token = none, id = Id, heard = Heard} = P) ->
    P#proc{token = #token{label = Label, from = Id, heard = Heard band ?SMALL}};
labelled(Label, #proc{token = Token} = P) ->
    P#proc{token = Token#token{label = Label}}.

%% The token of a child. Its parent's clock is what the child's serial is as a term, in 25 to 29.
bears(#proc{token = none} = P, _) ->
    {P, none};
bears(P, Child) ->
    #proc{token = #token{serial = Serial} = Token} = P1 = sends(P),
    Its = (Serial + 1) band ?SMALL,
    {P1#proc{clock = Its bsl 4 bor 15, heard = Its bsl 4 bor 15}, Token#token{
        from = Child, serial = Its, heard = Serial
    }}.

token(#proc{token = #token{label = Label, from = From, serial = Serial, heard = Heard}}) ->
    {18, Label, small(Serial), pid(From), small(Heard)}.

small(N) when N > ?SMALL bsr 1 -> N - ?SMALL - 1;
small(N) -> N.

%% The request that a process works for: by its label, where labels cannot be lent; else by its
%% cause.
whose(#proc{cause = Cause}, #world{plan = #{truth := causes}}) -> Cause;
whose(#proc{token = #token{label = Label}}, #world{labels = Labels}) -> maps:get(Label, Labels).

about(P, W) -> [Id || Id <- [whose(P, W)], Id =/= none].

%% -- children -------------------------------------------------------------------------------------

%% The spawn's call is told before the child lives, its return with the pid perhaps after the
%% child's first messages.
spawns(Kind, Body, #proc{cause = Cause} = P, W) ->
    {Child, W1} = new_proc(W),
    Id = Child#proc.id,
    {P1, Token} = bears(P, Id),
    Born = fun(V) ->
        later(
            500,
            {step, Id},
            put_proc(
                receives(Token, Child#proc{cause = Cause, k = Body, base = {proc_lib, init_p, 5}}),
                V
            )
        )
    end,
    case Token of
        none ->
            {P, Id, Born(W1)};
        _ ->
            {Function, Value} = spawn_function(Kind, Child),
            {Time, W2} = emit(P, call, about(P, W), [Function, {token(P)}], W1),
            {Told, W3} = emit(P, return_from, [], [Function, Value], W2),
            W4 = linked(whose(P, W), P, Id, Time, Told, W3),
            {P2, W5} = return_to({erlang, Kind, 1}, P1, W4),
            {P2, Id, Born(W5)}
    end.

spawn_function(monitor, #proc{pid = Pid}) -> {{erlang, spawn_opt, 4}, {Pid, make_ref()}};
spawn_function(spawn_opt, #proc{pid = Pid}) -> {{erlang, spawn_opt, 4}, Pid};
spawn_function(Function, #proc{pid = Pid}) -> {{erlang, Function, 3}, Pid}.

linked(none, _, _, _, _, W) ->
    W;
linked(
    Request,
    #proc{id = Id, stack = Stack},
    Child,
    Time,
    Told,
    #world{requests = Requests, spans = Spans} = W
) ->
    #{Request := R} = Requests,
    Open =
        case Stack of
            [Top | _] when (map_get(Top, Spans))#span.req =:= Request -> Top;
            _ -> none
        end,
    W#world{
        requests = Requests#{
            Request := R#req{links = (R#req.links)#{Child => {Id, Open, Time, Told}}}
        }
    }.

%% -- garbage collection and scheduling, in processes that hold a token ----------------------------

paused(Field, Start, Stop, Option, Ns, #proc{gc_armed = true} = P, #world{plan = Plan} = W) when
    map_get(Option, Plan)
->
    {T1, W1} = emit(P, Start, [], [info(Start)], W),
    {T2, W2} = emit(P, Stop, [], [info(Stop)], W1#world{now = T1 + Ns}),
    goes_on(0, P, costs(Field, T2 - T1, P, W2));
paused(_, _, _, _, _, P, W) ->
    goes_on(0, P, W).

costs(_, _, #proc{stack = []}, W) ->
    W;
costs(Field, Ns, #proc{stack = [Id | _]}, #world{spans = Spans} = W) ->
    #{Id := Span} = Spans,
    W#world{spans = Spans#{Id := setelement(Field, Span, element(Field, Span) + Ns)}}.

info(out) ->
    {gen_server, loop, 7};
info(in) ->
    {gen_server, loop, 7};
info(_) ->
    [
        {old_heap_block_size, 0},
        {heap_block_size, 233},
        {mbuf_size, 0},
        {stack_size, 9},
        {heap_size, 33},
        {bin_vheap_size, 0}
    ].

%% Waiting for messages is being scheduled out.
out(#proc{gc_armed = true} = P, #world{plan = #{sched := true}} = W) ->
    {Time, W1} = emit(P, out, [], [info(out)], W),
    {P#proc{out = Time}, W1};
out(P, W) ->
    {P, W}.

in(#proc{out = none} = P, W) ->
    {P, W};
in(#proc{out = Since} = P, W) ->
    {Time, W1} = emit(P, in, [], [info(in)], W),
    {P#proc{out = none}, costs(#span.off, Time - Since, P, W1)}.

%% -- the node -------------------------------------------------------------------------------------

new_proc(#world{procs = Procs} = W) ->
    Id = 100 + map_size(Procs),
    P = #proc{id = Id, pid = pid(Id)},
    {P, put_proc(P, W)}.

proc(Id, W) -> maps:get(Id, W#world.procs).
put_proc(#proc{id = Id} = P, #world{procs = Procs} = W) -> W#world{procs = Procs#{Id => P}}.
server({proc, Id}, _) -> Id;
server(Name, W) -> maps:get(Name, W#world.names).

%% A server of a name, that waits for messages.
named(Name, Lender, W) ->
    {#proc{id = Id} = P, #world{names = Names} = W1} = new_proc(W),
    put_proc(
        P#proc{server = true, state = idle, base = {server, loop, 1}, lender = Lender}, W1#world{
            names = Names#{Name => Id}
        }
    ).

pid(Id) ->
    Node = atom_to_binary(?NODE),
    binary_to_term(<<131, 88, 100, (byte_size(Node)):16, Node/binary, Id:32, 0:32, 77:32>>).

later(Ns, What, #world{now = Now, last = Last, queue = Queue, number = N} = W) ->
    W#world{number = N + 1, queue = gb_sets:add({max(Now, Last) + Ns, N, What}, Queue)}.

%% A message at the present time, or a little later, since every one has a time of its own.
emit(
    #proc{id = Id, pid = Pid},
    Kind,
    About,
    Rest,
    #world{now = Now, last = Last, events = Events} = W
) ->
    Time = max(Now, Last + 50),
    Event = #event{
        time = Time,
        proc = Id,
        about = About,
        kind = Kind,
        term = list_to_tuple([trace_ts, Pid, Kind] ++ Rest ++ [Time + base()])
    },
    {Time, W#world{last = Time, events = [Event | Events]}}.
