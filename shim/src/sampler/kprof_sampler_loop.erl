%% SPDX-License-Identifier: Apache-2.0
%% @doc The process that looks at the stacks of others, so many times a second each, and hands what
%% it saw to its owner in batches ({@link kprof_sampler} is the owner's side).
%%
%% <ul>
%% <li>It looks every some milliseconds at those whose turn it is. One whose reductions stood still
%% has the stack that it had, which costs a tenth of asking.</li>
%% <li>Others ask ({@link kprof_questions}): nothing waits for a process that does not
%% answer.</li>
%% <li>It keeps to its budget ({@link kprof_sample_budget}) by looking less often at all alike, and
%% tells for how long it held itself back.</li>
%% <li>The owner has one batch at most, until it says that it goes on. When the next one is finished
%% meanwhile, the sampler looks no more: what it keeps is bounded, whatever the network does.</li>
%% </ul>
%%
%% What that costs is {@link kprof_sample_cost}'s. Most of it is the price of waking threads: so how
%% often it wakes is {@link kprof_sampler_pace}'s.
-module(kprof_sampler_loop).

-export([init/2]).

-define(HAND_MS, 500).
% looks in a batch
-define(BATCH, 256).
% answers that are written before it is seen whether the tables are full
-define(WRITTEN, 16).
-define(LATE_US, 20000).
% until there has been a first scan
-define(FIRST_MS, 250).
-define(SECOND_SCAN_MS, 500).
% processes that are listed in the time of a look
-define(LISTED_IN_A_LOOK, 20).
% it looks so often who does not answer, if it does not tick more often
-define(SEE_US, 20000).
% of the looks that are wanted: then it is told that there are less
-define(LESS, 0.9).

-record(s, {
    owner :: pid(),
    wanted :: kprof_stacks:wanted(),
    % none: stacks are as deep as the node has them
    depth :: none | kprof_depth:depth(),
    keeper :: none | pid(),
    clock :: kprof_sampler_clock:clock(),
    questions :: kprof_questions:questions(),
    records :: kprof_stack_records:records(),
    sampled :: kprof_sampled:sampled(),
    % none: those that are looked at are named
    busiest :: none | kprof_busiest:busiest(),
    budget :: kprof_sample_budget:budget(),
    cost :: kprof_sample_cost:cost(),
    % bytes that it may tell
    volume :: kprof_sample_volume:volume(),
    % its owner knows that these make it look less often
    less = false :: boolean(),
    pace :: kprof_sampler_pace:pace(),
    % µs, as all times here but for those of records and questions
    next_at :: integer(),
    ticked_at :: integer(),
    % who has not answered
    seen_at :: integer(),
    ends_at :: infinity | integer(),
    choose_at :: integer(),
    % a first scan goes on, of which there is a first choice before it ends
    first = true :: boolean(),
    handed_at :: integer(),
    % the owner has a batch
    out = false :: boolean(),
    % looks that are due: part of one
    credit = 0.0 :: float(),
    due = [] :: [kprof_asker:item()],
    % to be described
    strangers = [] :: [pid()],
    % what came since the last turn: looks, and what their asking took in µs
    looks = 0 :: non_neg_integer(),
    looks_us = 0.0 :: float(),
    % processes of a scan
    measured = 0 :: non_neg_integer(),
    held_us = 0.0 :: float(),
    missed_us = 0.0 :: float(),
    samples = 0 :: non_neg_integer(),
    unchanged = 0 :: non_neg_integer(),
    unanswered = 0 :: non_neg_integer(),
    held_total_us = 0.0 :: float(),
    late_us = 0 :: non_neg_integer()
}).

%% @doc Tells its owner that it is ready, waits for its word, and looks.
-spec init(pid(), kprof_stacks:wanted()) -> no_return().
init(Owner, #{seconds := Seconds, budget_ppm := Ppm} = Wanted) ->
    Questions = kprof_questions:start_link(),
    Clock = kprof_sampler_clock:start_link(),
    Cost = kprof_sample_cost:new(kprof_sampler_clock:processes(Clock)),
    {Depth, Keeper, Keepers} = depth(Owner, Wanted),
    Own = Keepers ++ kprof_questions:processes(Questions) ++ kprof_sampler_clock:processes(Clock),
    At = erlang:monotonic_time(),
    Now = us(),
    Owner ! {kprof_sampler, self(), {ready, At, Own}},
    receive
        {kprof_sampler, go} -> ok
    end,
    next(
        chosen(Now, #s{
            owner = Owner,
            wanted = Wanted,
            depth = Depth,
            keeper = Keeper,
            clock = Clock,
            questions = Questions,
            records = kprof_stack_records:new(At),
            sampled = kprof_sampled:new(maps:get(labels, Wanted)),
            busiest = kprof_sample_choice:busiest(Wanted, [self() | Own]),
            budget = kprof_sample_budget:new(Ppm, Now),
            cost = Cost,
            pace = kprof_sampler_pace:new(Ppm, kprof_sample_cost:most_wake(Cost)),
            next_at = Now,
            ticked_at = Now,
            seen_at = Now,
            volume = kprof_sample_volume:new(maps:get(slice_s, Wanted, 0) > 0, Now),
            ends_at =
                case Seconds of
                    0 -> infinity;
                    _ -> Now + Seconds * 1000000
                end,
            choose_at = Now,
            handed_at = Now
        })
    ).

%% A run that stands for ever leaves the traces of exceptions as they are.
depth(_, #{slice_s := Slice}) when Slice > 0 ->
    {none, none, []};
depth(Owner, _) ->
    Depth = kprof_depth:deepen([self(), Owner]),
    Keeper = kprof_depth:keeper(Depth),
    _ = erlang:monitor(process, Keeper),
    {Depth, Keeper, [Keeper]}.

-spec next(#s{}) -> no_return().
next(S) ->
    receive
        Message -> turn(Message, S)
    after max(0, (wakes_at(S) - us() + 999) div 1000) -> turn(tick, S)
    end.

wakes_at(#s{next_at = At, seen_at = Seen, questions = Questions}) ->
    case kprof_questions:is_asking(Questions) of
        true -> min(At, Seen + ?SEE_US);
        false -> At
    end.

turn(Message, S0) ->
    Began = us(),
    S = ticks(message(Message, S0)),
    next(charge(us() - Began, S)).

%% Its own work, and that of the askers who came back meanwhile.
charge(Us, #s{measured = N, looks = 0, budget = Budget} = S) when N > 0 ->
    Spent = kprof_sample_cost:own(Us, N),
    S#s{measured = 0, budget = kprof_sample_budget:spend(scan, Spent, Budget)};
charge(Us, #s{looks = 0, budget = Budget} = S) ->
    S#s{budget = kprof_sample_budget:spend(other, kprof_sample_cost:own(Us, 0), Budget)};
charge(Us, #s{looks = N, looks_us = Asked, budget = Budget} = S) ->
    Spent = kprof_sample_cost:own(Us, N) + Asked,
    S#s{
        looks = 0,
        looks_us = 0.0,
        budget = kprof_sample_budget:spend({looks, N}, Spent, Budget)
    }.

message({kprof_asker, Ref, Answers, Ns, Left}, #s{questions = Before} = S) ->
    case kprof_questions:answered(Ref, Answers, Left, Before) of
        {Job, At, Counting, Late, Questions} ->
            Took = kprof_sample_cost:asking(Job, Answers, Ns, S#s.cost),
            work(bounded(answered(Job, At, Counting, Late, Took, S#s{questions = Questions})));
        none ->
            S
    end;
message({kprof_sampler, acknowledged}, S) ->
    hand(us(), S#s{out = false});
message({kprof_sampler, stop}, S) ->
    over(stopped, "", S);
message({kprof_sampler, anew}, S) ->
    told_anew(S);
message({'DOWN', _, process, Keeper, Why}, #s{keeper = Keeper, depth = Depth}) ->
    ok = kprof_depth:keeper_gone(Depth),
    exit({keeper_of_depth, Why});
% a tick, too; anything else is nobody's
message(_, S) ->
    S.

ticks(#s{next_at = At, seen_at = Seen} = S) ->
    case us() of
        Now when Now >= At -> tick(Now, S);
        Now when Now >= Seen + ?SEE_US -> work(looked(bounded(seen(Now, S))));
        _ -> S
    end.

seen(Now, #s{cost = Cost, budget = Budget} = S) ->
    Spent = kprof_sample_budget:spend(other, kprof_sample_cost:wake(Cost), Budget),
    S#s{seen_at = Now, budget = Spent}.

tick(Now, #s{ends_at = Ends} = S) when Now >= Ends ->
    over(done, "", S);
tick(Now, #s{next_at = Planned, ticked_at = Before, budget = Budget} = S0) ->
    Tick = kprof_sampler_pace:tick_us(hz(S0), kprof_sampled:size(S0#s.sampled), S0#s.pace),
    Next =
        case Now - Planned > Tick of
            true -> Now + Tick;
            false -> Planned + Tick
        end,
    ok = kprof_sampler_clock:ticks(Next div 1000, Tick div 1000, S0#s.clock),
    Refilled = kprof_sample_budget:refill(Now, Budget),
    Volume = kprof_sample_volume:refill(Now, S0#s.volume),
    Wakes = 1 + kprof_sampler_clock:wakes((Now - Before) / 1000, S0#s.clock),
    Woken = Wakes * kprof_sample_cost:wake(S0#s.cost),
    S = late(Now - Planned, S0#s{
        ticked_at = Now,
        seen_at = Now,
        next_at = Next,
        volume = Volume,
        budget = kprof_sample_budget:spend(other, Woken, Refilled)
    }),
    %% who came late has told that
    Passed =
        case Now - Planned > ?LATE_US of
            true -> Tick;
            false -> Now - Before
        end,
    goes_on(Passed, Now, hand(Now, looked(bounded(S)))).

goes_on(Us, Now, S) ->
    case is_full(S) of
        true -> held(float(Us), S#s{due = []});
        false -> work(earn(Us, choose(Now, S)))
    end.

%% The owner has not passed on the batch before, and the next one is there.
is_full(#s{out = Out, records = R}) ->
    Out andalso kprof_stack_records:is_waiting(R).

%% Of each process: as wanted, or as often as the bytes allow.
hz(#s{wanted = #{hz := Hz}, volume = Volume}) ->
    Hz * kprof_sample_volume:share(Volume).

late(Us, #s{late_us = Sum, records = R} = S) when Us > ?LATE_US ->
    S#s{late_us = Sum + Us, records = kprof_stack_records:late(Us, timed(R))};
late(_, S) ->
    S.

timed(R) ->
    kprof_stack_records:time(erlang:monotonic_time(), R).

%% --- what is asked ---

%% Who has not answered in time.
looked(#s{questions = Before} = S) ->
    {Silent, Left, Questions} = kprof_questions:look(erlang:monotonic_time(), Before),
    lists:foldl(
        fun silent/2, lists:foldl(fun not_asked/2, S#s{questions = Questions}, Left), Silent
    ).

silent({look, {Pid, _, _}}, #s{sampled = Sampled} = S) ->
    unanswered(Pid, S#s{sampled = kprof_sampled:slow(Pid, erlang:monotonic_time(), Sampled)});
silent({describe, Pid}, #s{sampled = Sampled0, records = R0} = S) ->
    {Sampled, R} = kprof_sampled:undescribed(Pid, Sampled0, R0),
    S#s{sampled = kprof_sampled:slow(Pid, erlang:monotonic_time(), Sampled), records = R};
silent({_, Pid}, #s{busiest = Busiest} = S) when Busiest =/= none ->
    S#s{busiest = kprof_busiest:silent(Pid, Busiest)};
silent(_, S) ->
    S.

not_asked({look, {Pid, _, _}}, S) -> unanswered(Pid, S);
not_asked(_, S) -> S.

unanswered(Pid, #s{sampled = Sampled, records = R, unanswered = N} = S) ->
    case kprof_sampled:number(Pid, Sampled) of
        {ok, Number} ->
            S#s{unanswered = N + 1, records = kprof_stack_records:unanswered(Number, timed(R))};
        error ->
            S
    end.

answered(look, At, Answers, false, Us, S) ->
    Counted = write(Answers, S#s{records = kprof_stack_records:time(At, as_deep(S))}),
    Counted#s{looks = S#s.looks + length(Answers), looks_us = S#s.looks_us + Us};
answered(look, _, _, true, Us, #s{budget = Budget} = S) ->
    S#s{budget = kprof_sample_budget:spend(other, Us, Budget)};
answered(describe, _, Answers, _, Us, #s{sampled = Sampled0, records = R0} = S) ->
    {Sampled, R} = kprof_sampled:described(Answers, Sampled0, timed(R0)),
    S#s{
        sampled = Sampled,
        records = R,
        budget = kprof_sample_budget:spend(other, Us, S#s.budget)
    };
answered(_, _, Answers, _, Us, #s{busiest = Busiest, budget = Budget} = S) ->
    S#s{
        busiest = kprof_busiest:measured(Answers, Busiest),
        measured = length(Answers),
        budget = kprof_sample_budget:spend(scan, Us, Budget)
    }.

%% Somebody may have changed the depth, another run of sampling for one.
as_deep(#s{depth = none, records = R}) -> kprof_stack_records:cut_at(kprof_depth:current(), R);
as_deep(#s{records = R}) -> R.

write(Answers, #s{sampled = Sampled, records = R} = S) when length(Answers) =< ?WRITTEN ->
    write(Answers, Sampled, R, 0, 0, S);
write(Answers, S) ->
    {Now, Later} = lists:split(?WRITTEN, Answers),
    write(Later, bounded(write(Now, S))).

%% This is most of the work: it changes the state once.
write([], Sampled, R, Samples, Unchanged, #s{samples = Samples0, unchanged = Unchanged0} = S) ->
    S#s{
        sampled = Sampled,
        records = R,
        samples = Samples0 + Samples,
        unchanged = Unchanged0 + Unchanged
    };
write([Answer | Answers], Sampled0, R0, Samples, Unchanged, S) ->
    case kprof_sampled:answer(Answer, Sampled0, R0) of
        {sample, Sampled, R} -> write(Answers, Sampled, R, Samples + 1, Unchanged, S);
        {unchanged, Sampled, R} -> write(Answers, Sampled, R, Samples, Unchanged + 1, S);
        {gone, Sampled, R} -> write(Answers, Sampled, R, Samples, Unchanged, S)
    end.

%% --- what is due ---

%% So much time has passed: the next ones are due, as far as the budget goes. Who has not answered
%% yet is not asked again.
earn(Us, #s{sampled = Sampled, credit = Credit, due = Due} = S0) ->
    Size = kprof_sampled:size(Sampled),
    Earned = Credit + Size * hz(S0) * Us / 1.0e6,
    S = held(Us * (1.0 - kprof_sample_volume:share(S0#s.volume)), S0),
    case Due of
        [] ->
            Wanted = wanted(Earned, Size),
            afford(Wanted, Size, Us, S#s{credit = Earned - Wanted});
        % answers take long
        _ when Earned =< Size -> S#s{credit = Earned};
        _ -> missed(Us * (Earned - Size) / Earned, S#s{credit = float(Size)})
    end.

%% All of them, if it is about as many: a part of them is next time no beginning.
wanted(Earned, Size) when Earned > 0.75 * Size, Earned < 1.25 * Size -> Size;
wanted(Earned, _) -> max(0, trunc(Earned)).

%% So many looks are due in that time; each process is looked at once at most. What is left out is
%% the budget's doing, or that of a node that has no time.
afford(Wanted, Size, Us, #s{pace = Pace} = S) ->
    Most = min(Wanted, Size),
    N = kprof_sample_budget:affords(Most, S#s.budget),
    Left = Us * (Wanted - N) / max(1, Wanted),
    case kprof_sampler_pace:is_short(Pace) of
        _ when N < Most ->
            Short = S#s{pace = kprof_sampler_pace:short(Pace)},
            due(N, told_held(held(Left, Short)));
        true ->
            due(N, told_held(held(Left, S#s{pace = kprof_sampler_pace:enough(Pace)})));
        false ->
            due(N, told_held(missed(Left, S)))
    end.

missed(Us, #s{missed_us = Before} = S) ->
    case Before + Us of
        Missed when Missed > ?LATE_US -> late(round(Missed), S#s{missed_us = 0.0});
        Missed -> S#s{missed_us = Missed}
    end.

held(Us, #s{held_us = Held, held_total_us = Sum} = S) ->
    S#s{held_us = Held + Us, held_total_us = Sum + Us}.

%% A millisecond at least, so that it is not told with each tick.
told_held(#s{held_us = Held, records = R} = S) when Held >= 1000 ->
    S#s{held_us = 0.0, records = kprof_stack_records:held(round(Held), timed(R))};
told_held(S) ->
    S.

due(0, S) ->
    S;
due(N, #s{sampled = Before} = S0) ->
    {Pids, Sampled} = kprof_sampled:next(N, Before),
    due(Pids, [], erlang:monotonic_time(), S0#s{sampled = Sampled}).

due([], Due, _, S) ->
    S#s{due = lists:reverse(Due)};
due([Pid | Pids], Due, Now, #s{questions = Questions, sampled = Sampled} = S) ->
    Item = kprof_sampled:item(Pid, Sampled),
    Asked = kprof_questions:is_asked(Pid, Questions),
    case Asked orelse kprof_sampled:is_slow(Pid, Now, Sampled) of
        false ->
            due(Pids, [Item | Due], Now, S);
        true when Asked ->
            due(Pids, Due, Now, unanswered(Pid, S));
        true ->
            case kprof_questions:alone(look, Item, Now, Questions) of
                {ok, Asking} -> due(Pids, Due, Now, S#s{questions = Asking});
                no -> due(Pids, Due, Now, unanswered(Pid, S))
            end
    end.

%% Has the next batch asked, if none is.
work(#s{questions = Questions} = S) ->
    case kprof_questions:has_batch(Questions) orelse is_full(S) of
        true -> S;
        false -> ask(S)
    end.

ask(#s{strangers = [_ | _] = Strangers} = S) ->
    {Now, Later} = lists:split(min(?BATCH, length(Strangers)), Strangers),
    ask(describe, Now, S#s{strangers = Later});
ask(#s{due = [_ | _] = Due} = S) ->
    {Now, Later} = lists:split(min(?BATCH, length(Due)), Due),
    ask(look, Now, S#s{due = Later});
ask(#s{busiest = none} = S) ->
    S;
ask(#s{busiest = Busiest0, budget = Budget, first = First} = S) ->
    %% before there is a choice, nothing else is worth the budget
    For =
        case First of
            true -> look;
            false -> scan
        end,
    case kprof_busiest:is_scanning(Busiest0) andalso kprof_sample_budget:may(For, Budget) of
        true ->
            case kprof_busiest:slice(Busiest0) of
                {none, Busiest} -> scanned(S#s{busiest = Busiest});
                {{Job, Pids}, Busiest} -> ask(Job, Pids, S#s{busiest = Busiest})
            end;
        false ->
            S
    end.

ask(Job, Items, #s{questions = Before} = S) ->
    case kprof_questions:can_ask(Before) of
        true ->
            S#s{questions = kprof_questions:ask(Job, Items, erlang:monotonic_time(), Before)};
        false ->
            % all askers wait for somebody
            lists:foldl(fun(Item, S1) -> not_asked({Job, Item}, S1) end, S, Items)
    end.

%% --- the choice ---

choose(Now, #s{choose_at = At} = S) when Now >= At -> chosen(Now, S);
choose(_, S) -> S.

%% It is time for a choice, or for a scan before it. Until there has been one, those count that have
%% been seen so far.
chosen(Now, #s{busiest = none, wanted = #{every_ms := Every} = Wanted} = S0) ->
    Pids = kprof_sample_choice:named(Wanted),
    S = ended(kprof_sampled:without(Pids, S0#s.sampled), S0),
    case Pids of
        [] -> none_left(Now, S);
        _ -> look_at(Pids, S#s{choose_at = Now + Every * 1000})
    end;
chosen(Now, #s{busiest = Busiest, first = First} = S) ->
    case kprof_busiest:is_scanning(Busiest) of
        true when First ->
            look_at(kprof_busiest:best(Busiest), S#s{choose_at = Now + ?FIRST_MS * 1000});
        true ->
            S#s{choose_at = Now + ?FIRST_MS * 1000};
        false ->
            %% before OTP 28 it takes the list of them all
            S#s{
                busiest = kprof_busiest:begin_scan(Busiest),
                measured = erlang:system_info(process_count) div ?LISTED_IN_A_LOOK,
                choose_at = Now + ?FIRST_MS * 1000
            }
    end.

%% Those of them that have ended since they were looked at last.
ended(Left, S) ->
    Ended = Left -- kprof_sample_choice:there(Left),
    write([{Pid, gone} || Pid <- Ended], S).

none_left(Now, #s{wanted = #{every_ms := Every} = Wanted} = S) ->
    case kprof_sample_choice:may_come(Wanted) of
        true -> look_at([], S#s{choose_at = Now + Every * 1000});
        false -> over(no_process, "none of its processes is left", S)
    end.

%% The second scan follows soon: only then it is known what changed.
scanned(#s{busiest = Busiest, first = First, wanted = #{every_ms := Every}} = S) ->
    Wait =
        case First of
            true -> min(?SECOND_SCAN_MS, Every);
            false -> Every
        end,
    look_at(kprof_busiest:best(Busiest), S#s{
        busiest = kprof_busiest:end_scan(Busiest), first = false, choose_at = us() + Wait * 1000
    }).

look_at(Pids, #s{sampled = Before} = S) ->
    {Strangers, Sampled} = kprof_sampled:choose(Pids, Before),
    S#s{sampled = Sampled, strangers = Strangers}.

%% The tables of what was told are full: it is told anew.
bounded(#s{records = R} = S) ->
    case kprof_stack_records:is_full(R) of
        true -> told_anew(S);
        false -> S
    end.

told_anew(#s{records = R0, sampled = Before} = S) ->
    {Sampled, R} = kprof_sampled:forget(Before, kprof_stack_records:forget(timed(R0))),
    S#s{sampled = Sampled, records = R}.

%% --- handing over ---

hand(_, #s{out = true} = S) ->
    S;
hand(Now, #s{records = R0, handed_at = At} = S) ->
    case kprof_stack_records:take(R0) of
        none when Now - At < ?HAND_MS * 1000 ->
            S;
        none ->
            {Bytes, R} = kprof_stack_records:take(kprof_stack_records:close(timed(R0))),
            hand_over(Now, Bytes, S#s{records = R});
        {Bytes, R} ->
            hand_over(Now, Bytes, S#s{records = R})
    end.

hand_over(Now, Bytes, #s{owner = Owner, volume = Volume} = S) ->
    Owner ! {kprof_sampler, self(), {taken, erlang:monotonic_time(), Bytes, totals(S)}},
    Spent = kprof_sample_volume:spend(byte_size(Bytes), Volume),
    said_less(S#s{out = true, handed_at = Now, volume = Spent}).

%% Once, until it is as often as wanted again.
said_less(#s{volume = Volume, owner = Owner, less = Less} = S) ->
    case kprof_sample_volume:share(Volume) of
        1.0 ->
            S#s{less = false};
        Share when Share < ?LESS, not Less ->
            Owner ! {kprof_sampler, self(), {less, Share}},
            S#s{less = true};
        _ ->
            S
    end.

totals(S) ->
    #{
        samples => S#s.samples,
        unchanged => S#s.unchanged,
        unanswered => S#s.unanswered,
        held_ms => round(S#s.held_total_us / 1000),
        late_ms => S#s.late_us div 1000,
        cost_us => kprof_sample_budget:cost(S#s.budget),
        processes => kprof_sampled:size(S#s.sampled)
    }.

%% What there is goes to the owner, one batch after the other, and then the word that it is over.
-spec over(done | stopped | no_process, unicode:chardata(), #s{}) -> no_return().
over(Reason, Text, #s{depth = Depth} = S0) ->
    _ = Depth =:= none orelse kprof_depth:restore(Depth),
    ok = end_processes(S0),
    At = erlang:monotonic_time(),
    #s{records = R} = S = told_held(S0),
    hand_rest(At, Reason, Text, S#s{records = kprof_stack_records:close(timed(R))}).

-spec hand_rest(integer(), atom(), unicode:chardata(), #s{}) -> no_return().
hand_rest(At, Reason, Text, #s{out = true} = S) ->
    receive
        {kprof_sampler, acknowledged} -> hand_rest(At, Reason, Text, S#s{out = false})
    end;
hand_rest(At, Reason, Text, #s{records = R0, owner = Owner} = S) ->
    case kprof_stack_records:take(R0) of
        {Bytes, R} ->
            hand_rest(At, Reason, Text, hand_over(us(), Bytes, S#s{records = R}));
        none ->
            Owner ! {kprof_sampler, self(), {over, At, Reason, Text, totals(S)}},
            exit(normal)
    end.

end_processes(#s{questions = Questions, clock = Clock}) ->
    lists:foreach(
        fun(Pid) ->
            true = unlink(Pid),
            true = exit(Pid, kill)
        end,
        kprof_questions:processes(Questions) ++ kprof_sampler_clock:processes(Clock)
    ).

us() ->
    erlang:monotonic_time(microsecond).
