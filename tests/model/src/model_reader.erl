%% SPDX-License-Identifier: Apache-2.0
%% What a reader of the stream can know: which requests are open when, how they end, and which of
%% them it has to call incomplete. Message by message, by the rules that requests.h and joins.c
%% state; what the spans' times are and how they hang together is not its business: that the
%% simulated node knows.
-module(model_reader).

-export([read/1]).

-include("model.hrl").

% of the stream's time between two looks for what is over
-define(LOOK, (50 * ?MS)).

%% An open call. key: its request, none when that was over; number: of its span there; caller: the
%% function that it returns to, for calls without values; losses: as they were when it came.
-record(call, {key = none, number, what, function, caller = none, losses}).
%% stack: innermost first. last: other | return | exception, and returned: the request that it was
%% about. guessed: the request of which a return_to has ended a call that it need not have been.
-record(proc, {stack = [], last = other, returned = none, guessed = none, begun = none}).
%% A request. id: the simulated node's number, once its begin has come. spans: number => {open |
%% over, blind | whole, Pid, Start}.
-record(open, {
    id = none,
    label,
    first,
    last,
    begun = false,
    start,
    ended = no,
    stop,
    error,
    stop_pid,
    damaged = false,
    lost = false,
    losses,
    spans = #{},
    place,
    deadline
}).
-record(reader, {
    latest = none,
    looked = none,
    losses = 0,
    lost_at = #{},
    lost = false,
    lost_until = -1,
    index = 0,
    next = 1,
    labels = #{},
    closed = #{},
    open = #{},
    procs = #{},
    lists = #{new => [], open => [], closing => []},
    counts = #{},
    seen = #{},
    taken = #{},
    raised = #{},
    fates = #{}
}).

%% @doc From the stream, with what was lost in it:
%%   fates   of the requests whose begin came: #fate{}
%%   taken   times of the calls that were taken as calls of such requests
%%   seen    times of messages => their place in the stream, an atom when they were lost
%%   raised  times of the calls without values that are known to have raised
%%   counts  column of the ledger => number
-spec read([#event{} | {lost, [#event{}]}]) ->
    #{fates := map(), taken := map(), seen := map(), raised := map(), counts := map()}.
read(Items) ->
    R = finish(lists:foldl(fun item/2, #reader{}, Items)),
    #{
        fates => R#reader.fates,
        taken => R#reader.taken,
        seen => R#reader.seen,
        raised => R#reader.raised,
        counts => R#reader.counts
    }.

%% A loss hurts what is open, and what begins no later than DISORDER after the next message or the
%% latest one. What had ended, with nothing open, more than DISORDER before the latest one is as it
%% was.
item({lost, Events}, R) ->
    Never = maps:from_list([{Time, lost} || #event{time = Time} <- Events]),
    count(
        dropped_messages,
        length(Events),
        R#reader{
            losses = R#reader.losses + 1,
            lost_at = (R#reader.lost_at)#{R#reader.losses => R#reader.latest},
            lost = true,
            lost_until = infinity,
            seen = maps:merge(R#reader.seen, Never)
        }
    );
item(#event{time = Time} = E, #reader{index = Index, seen = Seen} = R) ->
    deliver(
        E,
        look(
            Time,
            until(
                Time,
                count(messages, 1, R#reader{index = Index + 1, seen = Seen#{Time => Index + 1}})
            )
        )
    ).

until(Time, #reader{lost = true, latest = Latest} = R) ->
    R#reader{
        lost = false,
        lost_until =
            ?DISORDER +
                case Latest of
                    none -> Time;
                    _ -> max(Time, Latest)
                end
    };
until(_, R) ->
    R.

look(Time, #reader{latest = Latest} = R) when Latest =/= none, Time =< Latest -> R;
look(Time, #reader{looked = Looked} = R) when Looked =/= none, Time - Looked < ?LOOK ->
    R#reader{latest = Time};
look(Time, R) ->
    expire(Time, judge_new(Time, close_due(Time, R#reader{latest = Time, looked = Time}))).

count(What, N, #reader{counts = Counts} = R) ->
    R#reader{counts = maps:update_with(What, fun(Before) -> Before + N end, N, Counts)}.

%% -- messages -------------------------------------------------------------------------------------

deliver(
    #event{
        proc = Pid, kind = call, time = Time, about = About, term = {_, _, _, Function, Note, _}
    },
    R
) ->
    {{_, Label, _, _, _}, More} = note(Note),
    case Function of
        {kprof_mark, request_begin, 1} ->
            begins(hd(About), Label, Pid, Time, R);
        {kprof_mark, request_end, 1} ->
            ends(Label, Pid, Time, More, R);
        {erlang, _, _} ->
            spawns(Label, Pid, Time, Function, R);
        _ ->
            {_, R1} = calls(Label, Pid, Time, Function, Function, More, R),
            R1
    end;
deliver(#event{proc = Pid, kind = Kind, time = Time, term = {_, _, _, Function, Value, _}}, R) when
    Kind =:= return_from; Kind =:= exception_from
->
    case Function of
        {erlang, _, _} -> spawned(Pid, Value, R);
        _ -> returns(Pid, Function, Kind, Time, R)
    end;
deliver(#event{proc = Pid, kind = return_to, time = Time, term = {_, _, _, Function, _}}, R) ->
    return_to(Pid, Function, Time, R);
deliver(#event{proc = Pid, kind = out_exited, time = Time, term = {_, _, _, _, _}}, R) ->
    exited(Pid, Time, R);
deliver(_, R) ->
    R.

%% A note's token, and what it says of how the call returns, or of the outcome.
note({Token}) -> {Token, none};
note({Token, Caller, _, none}) -> {Token, {caller, Caller}};
note({Token, {_, token_lost}}) -> {Token, lost};
note({Token, Outcome}) -> {Token, Outcome}.

begins(Id, Label, Pid, Time, R) ->
    R1 =
        case known(Label, R) of
            % it is used again
            #open{begun = true} -> R#reader{labels = maps:remove(Label, R#reader.labels)};
            _ -> R
        end,
    {Key, R2} = request(Label, Time, R1#reader{closed = maps:remove(Label, R1#reader.closed)}),
    P = proc(Pid, R2),
    O = maps:get(Key, R2#reader.open),
    put_proc(
        Pid,
        P#proc{begun = Key, last = return, returned = Key},
        put_open(Key, O#open{id = Id, begun = true, start = Time}, R2)
    ).

ends(Label, Pid, Time, Outcome, R) ->
    {Key, R1} =
        case known(Label, R) of
            % a marker that comes late is no stale call
            none when is_map_key(Label, R#reader.closed) -> {none, R};
            _ -> request(Label, Time, R)
        end,
    R2 =
        case R1#reader.procs of
            #{Pid := P} -> put_proc(Pid, P#proc{last = return, returned = Key}, R1);
            _ -> R1
        end,
    Lost = Outcome =:= lost,
    case R2#reader.open of
        #{Key := O} ->
            R3 = count(
                lost_tokens,
                case Lost of
                    true -> 1;
                    false -> 0
                end,
                R2
            ),
            ended(
                Key,
                marker,
                Pid,
                Time,
                Outcome =/= ok,
                put_open(
                    Key,
                    O#open{damaged = O#open.damaged orelse Lost, lost = O#open.lost orelse Lost},
                    R3
                )
            );
        _ ->
            R2
    end.

%% Of several end markers the earliest counts, and any of them before a death.
ended(Key, How, Pid, Time, Error, #reader{open = Open} = R) ->
    case maps:get(Key, Open) of
        #open{ended = marker, stop = Before} when Before =< Time -> R;
        O ->
            to(
                closing,
                Key,
                Time + ?GRACE,
                put_open(Key, O#open{ended = How, stop = Time, error = Error, stop_pid = Pid}, R)
            )
    end.

spawns(Label, Pid, Time, Function, R) ->
    case known(Label, R) of
        % of what is over it tells nothing, but it has a return
        none when is_map_key(Label, R#reader.closed) ->
            R1 = forget_lost(Pid, R),
            push(Pid, #call{what = spawn, losses = R1#reader.losses}, R1);
        _ ->
            {_, R1} = calls(Label, Pid, Time, spawn, Function, none, R),
            R1
    end.

calls(Label, Pid, Time, What, Function, More, R0) ->
    {Key, R1} = request(Label, Time, forget_lost(Pid, R0)),
    Caller =
        case More of
            {caller, Of} -> Of;
            _ -> none
        end,
    R2 = doubt_below(Key, (proc(Pid, R1))#proc.stack, R1),
    Call = #call{
        key = Key, what = What, function = Function, caller = Caller, losses = R2#reader.losses
    },
    case R2#reader.open of
        #{Key := O} ->
            Number = map_size(O#open.spans),
            State =
                case {What, Caller} of
                    {spawn, _} -> over;
                    _ -> open
                end,
            Kind =
                case {What, Caller} of
                    {spawn, _} -> spawn;
                    {_, none} -> whole;
                    _ -> blind
                end,
            Span = {State, Kind, Pid, Time},
            {Key,
                push(
                    Pid,
                    Call#call{number = Number},
                    taken(
                        Time,
                        Key,
                        put_open(Key, O#open{spans = (O#open.spans)#{Number => Span}}, R2)
                    )
                )};
        _ ->
            {Key, push(Pid, Call, R2)}
    end.

taken(Time, Key, #reader{taken = Taken} = R) -> R#reader{taken = Taken#{Time => Key}}.

%% A call of another request, or of none, above one without a value: that one has been left in
%% silence, most likely.
doubt_below(Key, [#call{key = Other, caller = Caller} | _], #reader{open = Open} = R) when
    Caller =/= none, Other =/= Key
->
    case Open of
        #{Other := #open{damaged = false} = O} ->
            count(ambiguous_returns, 1, put_open(Other, O#open{damaged = true}, R));
        _ ->
            R
    end;
doubt_below(_, _, R) ->
    R.

spawned(Pid, _, R) ->
    case proc(Pid, R) of
        #proc{stack = [#call{what = spawn, key = Key} | Below]} = P ->
            put_proc(Pid, P#proc{stack = Below, last = return, returned = Key}, R);
        _ ->
            R
    end.

%% -- what ends calls ------------------------------------------------------------------------------

returns(Pid, Function, Kind, Time, R) ->
    #proc{stack = Stack} = proc(Pid, R),
    case lists:splitwith(fun(#call{what = What}) -> What =/= Function end, Stack) of
        {_, []} ->
            count(orphan_returns, 1, R);
        {Above, [#call{key = Key} = Match | Below]} ->
            R1 = over(
                Match,
                Time,
                unwind(
                    Above,
                    [Match],
                    case Kind of
                        return_from -> tail_call;
                        exception_from -> exception
                    end,
                    Time,
                    R
                )
            ),
            Last =
                case Kind of
                    return_from -> return;
                    exception_from -> exception
                end,
            put_proc(Pid, (proc(Pid, R1))#proc{stack = Below, last = Last, returned = Key}, R1)
    end.

%% Calls that are off the stack. Those with a value had to return. When the others ended is known if
%% an exception has left them that the function which called them did not catch: the call below is
%% that function's, and not by a recursion.
unwind([], _, _, _, R) ->
    R;
unwind([#call{caller = none, what = What, key = Key} | Above], Below, How, Time, R) ->
    unwind(
        Above,
        Below,
        How,
        Time,
        case What of
            spawn -> R;
            _ -> hurt(Key, count(unwound_frames, 1, R))
        end
    );
unwind([#call{key = Key} = Call | Above], Below, How, Time, R) ->
    R1 = over(
        Call,
        Time,
        case How of
            exception -> raised(Call, R);
            tail_call -> R
        end
    ),
    Known = How =:= tail_call orelse direct(Call, Above ++ Below),
    unwind(
        Above,
        Below,
        How,
        Time,
        case Known of
            true -> R1;
            false -> hurt(Key, count(ambiguous_returns, 1, R1))
        end
    ).

%% Whether a call was made by the function of the one below it, not in a recursion: had that one
%% caught what it raised, it would be told.
direct(#call{caller = Caller, function = Function}, [#call{function = Caller} | _]) ->
    Caller =/= none andalso Caller =/= Function;
direct(_, _) ->
    false.

return_to(Pid, Function, Time, R) when is_map_key(Pid, R#reader.procs) ->
    #proc{stack = Stack} = P0 = proc(Pid, R),
    P =
        case Stack of
            % it raised
            [#call{what = spawn, key = Key} | Rest] ->
                P0#proc{stack = Rest, last = exception, returned = Key};
            _ ->
                P0
        end,
    {P2, R2} =
        case landing(P#proc.stack, Function, P#proc.last, R#reader.losses, []) of
            {at_caller, Above, [First | _] = Left} ->
                Passed = Above =/= [] andalso direct(lists:last(Above), Left),
                chain(
                    Function,
                    Time,
                    P#proc{stack = Left},
                    unwind(
                        Above,
                        Left,
                        exception,
                        Time,
                        case Passed of
                            true -> raised(First, R);
                            false -> R
                        end
                    )
                );
            {inside, Above, Left} ->
                {P#proc{stack = Left}, unwind(Above, Left, exception, Time, R)};
            nowhere ->
                {P, unexplained(P, R)}
        end,
    put_proc(Pid, P2#proc{last = other}, R2);
return_to(_, _, _, R) ->
    R.

%% Where control is: behind a call that returns to the function, or in a call of it. It has not
%% passed calls with values, if nothing was lost.
landing(
    [#call{function = Function, caller = Caller, what = What} | _] = Left, Function, Last, _, Above
) when
    What =/= spawn, Caller =/= Function orelse Last =/= other
->
    blind(Left, {inside, lists:reverse(Above), Left});
landing([#call{caller = Function} | _] = Left, Function, _, _, Above) ->
    {at_caller, lists:reverse(Above), Left};
landing([#call{caller = none, what = What, losses = Losses} | _], _, _, Losses, _) when
    What =/= spawn
->
    nowhere;
landing([Call | Below], Function, Last, Losses, Above) ->
    landing(Below, Function, Last, Losses, [Call | Above]);
landing([], _, _, _, _) ->
    nowhere.

%% Where none is open without a value, a return_to explains nothing.
blind(Left, Landing) ->
    case lists:any(fun(#call{caller = Caller}) -> Caller =/= none end, Left) of
        true -> Landing;
        false -> nowhere
    end.

%% The calls on top that return there, by tail calls all at once. It is a guess that they are
%% several, and that it is one behind a message that may have a return_to of its own.
chain(
    Function,
    Time,
    #proc{
        stack = [#call{key = First} | _],
        last = Last,
        returned = Returned,
        guessed = Guessed,
        begun = Begun
    } = P,
    R
) ->
    Whose =
        case Last of
            other -> First;
            _ -> Returned
        end,
    %% a call of an older request, left in silence, may explain by chance what shows the guess to be
    %% wrong
    Chance =
        Last =:= other andalso Guessed =:= Begun andalso Guessed =/= First andalso
            is_map_key(Guessed, R#reader.open),
    R1 =
        case Chance of
            true -> hurt(Guessed, count(ambiguous_returns, 1, R));
            false -> R
        end,
    chain(Function, Time, Last =/= other, Whose, P, R1).

chain(Function, Time, Guess, Whose, #proc{stack = [#call{key = Key} = Call | Below]} = P, R) ->
    R1 = over(Call, Time, R),
    % that one was left before
    R2 =
        case Key of
            Whose -> R1;
            _ -> hurt(Key, count(ambiguous_returns, 1, R1))
        end,
    P1 = P#proc{
        stack = Below,
        guessed =
            case Guess andalso Key =:= Whose of
                true -> Key;
                false -> P#proc.guessed
            end
    },
    case Below of
        [#call{caller = Function, function = Other} | _] when Other =/= Function ->
            chain(Function, Time, true, Whose, P1, R2);
        _ ->
            {P1, R2}
    end.

%% A return_to that is of no open call. Then one was taken for ended that was not; or an exception
%% has left some of those on top.

% it is of that message
unexplained(#proc{last = Last}, R) when Last =/= other -> R;
unexplained(#proc{stack = Stack, guessed = Guessed}, #reader{open = Open} = R) ->
    Wrong = is_map_key(Guessed, Open),
    case lists:takewhile(fun(#call{caller = Caller}) -> Caller =/= none end, Stack) of
        [] when Wrong -> hurt(Guessed, count(ambiguous_returns, 1, R));
        [] ->
            R;
        Blind ->
            lists:foldl(
                fun(#call{key = Key}, R1) -> hurt(Key, R1) end,
                hurt(Guessed, count(ambiguous_returns, 1, R)),
                Blind
            )
    end.

%% A process is dead. Calls without values may have been left before. A request that it began last
%% and left by an exception has ended here.
exited(Pid, Time, R) when is_map_key(Pid, R#reader.procs) ->
    #proc{stack = Stack, begun = Begun, last = Last} = proc(Pid, R),
    {Rest, Crashed, R1} = dies(Stack, Begun, Time, Last =:= exception andalso Stack =:= [], R),
    R2 = unwind(Rest, [], exception, Time, R1),
    R3 =
        case R2#reader.open of
            #{Begun := #open{ended = no}} when Crashed -> ended(Begun, death, Pid, Time, true, R2);
            _ -> R2
        end,
    R3#reader{procs = maps:remove(Pid, R3#reader.procs)};
exited(_, _, R) ->
    R.

%% Calls with values that are still open, with nothing lost since, were left by a kill. A spawn
%% raised.
dies([#call{what = spawn} | Below], Begun, Time, Crashed, R) ->
    dies(Below, Begun, Time, Crashed, R);
dies(
    [#call{caller = none, losses = Losses} | _] = Rest, _, _, Crashed, #reader{losses = Now} = R
) when Losses =/= Now ->
    {Rest, Crashed, R};
dies([#call{caller = Caller, key = Key} = Call | Below], Begun, Time, _, R) ->
    R1 = over(Call, Time, raised(Call, R)),
    R2 =
        case Caller =:= none orelse direct(Call, Below) of
            true -> R1;
            false -> hurt(Key, count(ambiguous_returns, 1, R1))
        end,
    dies(Below, Begun, Time, Below =:= [] andalso Key =:= Begun, R2);
dies([], _, _, Crashed, R) ->
    {[], Crashed, R}.

%% -- calls and requests ---------------------------------------------------------------------------

over(#call{what = spawn}, _, R) ->
    R;
over(#call{key = Key, number = Number}, Time, #reader{open = Open} = R) ->
    case Open of
        #{Key := #open{spans = #{Number := {_, Kind, Pid, Start}} = Spans, last = Last} = O} ->
            put_open(
                Key,
                O#open{spans = Spans#{Number := {over, Kind, Pid, Start}}, last = max(Last, Time)},
                R
            );
        _ ->
            R
    end.

raised(#call{caller = none}, R) ->
    R;
raised(#call{key = Key, number = Number}, #reader{open = Open, raised = Raised} = R) ->
    case Open of
        #{Key := #open{spans = #{Number := {_, _, _, Start}}}} ->
            R#reader{raised = Raised#{Start => true}};
        _ ->
            R
    end.

hurt(Key, #reader{open = Open} = R) ->
    case Open of
        #{Key := O} -> put_open(Key, O#open{damaged = true}, R);
        _ -> R
    end.

%% Calls on top whose return need not come, or may be lost, are forgotten with their request. A
%% spawn returns before the process calls.
forget_lost(Pid, #reader{losses = Losses, open = Open} = R) ->
    P = proc(Pid, R),
    % it raised
    Gone = fun
        (#call{what = spawn}) ->
            true;
        (#call{key = Key, caller = Caller, losses = L}) ->
            not is_map_key(Key, Open) andalso (Caller =/= none orelse L =/= Losses)
    end,
    put_proc(Pid, P#proc{stack = lists:dropwhile(Gone, P#proc.stack)}, R).

push(Pid, Call, R) ->
    P = proc(Pid, R),
    put_proc(Pid, P#proc{stack = [Call | P#proc.stack], last = other}, R).

proc(Pid, #reader{procs = Procs}) -> maps:get(Pid, Procs, #proc{}).
put_proc(Pid, P, #reader{procs = Procs} = R) -> R#reader{procs = Procs#{Pid => P}}.
put_open(Key, O, #reader{open = Open} = R) -> R#reader{open = Open#{Key => O}}.

known(Label, #reader{labels = Labels, open = Open}) ->
    case Labels of
        #{Label := Key} -> maps:get(Key, Open);
        _ -> none
    end.

%% The request of a label, opened if there is none; none when that is over.
request(
    Label,
    Time,
    #reader{labels = Labels, open = Open, closed = Closed, next = Key, losses = Losses} = R
) ->
    case {Labels, Closed} of
        {#{Label := Known}, _} ->
            #{Known := #open{first = First, last = Last} = O} = Open,
            {Known, put_open(Known, O#open{first = min(First, Time), last = max(Last, Time)}, R)};
        {_, #{Label := _}} ->
            {none, count(stale_calls, 1, R)};
        _ ->
            % an atom is more than any number
            Of =
                case Time =< R#reader.lost_until of
                    true -> Losses - 1;
                    false -> Losses
                end,
            {Key,
                to(new, Key, Time + ?GRACE, (put_open(
                    Key, #open{label = Label, first = Time, last = Time, losses = Of}, R
                ))#reader{
                    next = Key + 1, labels = Labels#{Label => Key}
                })}
    end.

%% -- time -----------------------------------------------------------------------------------------

%% Requests wait in three lists for what is to come next, each in the order in which they got there.
to(List, Key, Deadline, #reader{lists = Lists} = R) ->
    #open{place = Place} = O = maps:get(Key, R#reader.open),
    Left =
        case Place of
            undefined -> Lists;
            _ -> Lists#{Place := lists:delete(Key, maps:get(Place, Lists))}
        end,
    put_open(Key, O#open{place = List, deadline = Deadline}, R#reader{
        lists = Left#{List := maps:get(List, Left) ++ [Key]}
    }).

head(List, #reader{lists = Lists, open = Open}) ->
    case Lists of
        #{List := [Key | _]} -> {Key, maps:get(Key, Open)};
        _ -> none
    end.

close_due(Now, R) ->
    case head(closing, R) of
        {Key, #open{deadline = Deadline}} when Deadline =< Now ->
            close_due(Now, close(Key, complete, R));
        _ ->
            R
    end.

judge_new(Now, R) ->
    case head(new, R) of
        {Key, #open{deadline = Deadline, first = First, last = Last, begun = Begun}} when
            Deadline =< Now
        ->
            judge_new(
                Now,
                if
                    Now - First > ?TIMEOUT -> close(Key, expired, R);
                    not Begun, Now - Last > ?GRACE -> close(Key, incomplete, R);
                    Begun -> to(open, Key, never, R);
                    true -> to(new, Key, Now + ?GRACE, R)
                end
            );
        _ ->
            R
    end.

expire(Now, R) ->
    case head(open, R) of
        {Key, #open{first = First}} when Now - First > ?TIMEOUT ->
            expire(Now, close(Key, expired, R));
        _ ->
            R
    end.

%% The end of the stream.
finish(#reader{index = Index} = R0) ->
    R = R0#reader{index = Index + 1},
    R1 = lists:foldl(
        fun(Key, Acc) -> close(Key, complete, Acc) end, R, maps:get(closing, R#reader.lists)
    ),
    lists:foldl(
        fun(List, Acc) ->
            lists:foldl(
                fun(Key, Acc1) -> close(Key, incomplete, Acc1) end,
                Acc,
                maps:get(List, Acc#reader.lists)
            )
        end,
        R1,
        [new, open]
    ).

close(
    Key,
    Wanted,
    #reader{open = Open, labels = Labels, lists = Lists, closed = Closed, losses = Losses} = R
) ->
    #{Key := #open{label = Label, place = Place, spans = Spans} = O} = Open,
    {Fate, R1} =
        case O of
            % nobody's calls
            #open{begun = false, ended = no, losses = Losses, damaged = false} ->
                {absent,
                    count(
                        stale_calls,
                        length([x || {_, Kind, _, _} <- maps:values(Spans), Kind =/= spawn]),
                        R
                    )};
            _ ->
                late_open(Spans, judge(O, Wanted, R))
        end,
    R2 = R1#reader{
        open = maps:remove(Key, Open),
        lists = Lists#{Place := lists:delete(Key, maps:get(Place, Lists))}
    },
    R3 =
        case Labels of
            #{Label := Key} ->
                R2#reader{labels = maps:remove(Label, Labels), closed = Closed#{Label => true}};
            % it is another's by now
            _ ->
                R2
        end,
    told(Key, O, Fate, R3).

told(_, #open{id = none}, Fate, R) ->
    tally(Fate, R);
told(
    Key,
    #open{
        id = Id,
        stop = Stop,
        error = Error,
        stop_pid = Pid,
        damaged = Damaged,
        lost = Lost,
        spans = Spans
    },
    Fate,
    #reader{fates = Fates, index = Index} = R
) ->
    Blind = length([x || {_, blind, _, _} <- maps:values(Spans)]),
    Told = #fate{
        key = Key,
        fate = Fate,
        closed = Index,
        stop = Stop,
        error = Error,
        stop_pid = Pid,
        damaged = Damaged,
        lost = Lost,
        blind = Blind
    },
    tally(Fate, R#reader{fates = Fates#{Id => Told}}).

tally(complete, R) -> count(requests_complete, 1, R);
tally(incomplete, R) -> count(requests_incomplete, 1, R);
tally(expired, R) -> count(requests_expired, 1, R);
tally(absent, R) -> R.

%% Whether a request had ended long before the first loss since it opened.
is_over(_, none) ->
    false;
is_over(#open{stop = Stop, last = Last, spans = Spans}, LostAt) ->
    max(Stop, Last) < LostAt - ?DISORDER andalso
        not lists:any(fun(Span) -> element(1, Span) =:= open end, maps:values(Spans)).

%% What goes on when a complete request is closed for good.
late_open(Spans, {complete, R}) ->
    {complete, count(stale_calls, length([x || {open, _, _, _} <- maps:values(Spans)]), R)};
late_open(_, Judged) ->
    Judged.

%% Whole is what has begin and end, lost nothing, and has nothing open that began before its end and
%% must have ended: in the process that ended it; or without a value, as that may have ended in
%% silence.
judge(_, Wanted, R) when Wanted =/= complete -> {Wanted, R};
judge(#open{damaged = Damaged, ended = Ended, begun = Begun}, _, R) when
    Damaged; Ended =:= no; not Begun
->
    {incomplete, R};
judge(#open{losses = Of} = O, Wanted, #reader{losses = Losses, lost_at = LostAt} = R) when
    Of =/= Losses
->
    case is_over(O, maps:get(Of, LostAt, none)) of
        true -> judge(O#open{losses = Losses}, Wanted, R);
        false -> {incomplete, R}
    end;
judge(#open{start = Start, stop = Stop}, _, R) when Stop < Start -> {incomplete, R};
judge(#open{spans = Spans, stop = Stop, stop_pid = Ender}, _, R) ->
    Bad = [
        Kind
     || {_, {open, Kind, Pid, Start}} <- lists:keysort(1, maps:to_list(Spans)),
        Start =< Stop,
        Kind =:= blind orelse Pid =:= Ender
    ],
    case Bad of
        [] -> {complete, R};
        [blind | _] -> {incomplete, count(ambiguous_returns, 1, R)};
        [whole | _] -> {incomplete, R}
    end.
