%% SPDX-License-Identifier: Apache-2.0
%% @doc The token of a request: which process has one, when it begins and ends.
%%
%% A process that began a request, or entered one that a message brought, remembers it in its
%% dictionary: `{Label, Depth, StartedAt, Kind}'. `Label' is 0 when the sampler left the request
%% out, so that nested calls do not draw again. `Kind' is `own' when the outermost `set_token' was
%% made here, `carried' when the token came with a message; the last `clear_token' ends the request
%% only in the first case. It is `web' for a request of a web server's helper, which is over when
%% the helper says so, and `{inside, Before}' when that has begun under the token Before of an
%% entry: then it is the entry's request, most likely. Whether its process is inside of the entry's
%% call the collector knows ({@link kprof_entry}); what this process does next may be that one's, so
%% it has the entry's token again afterwards. A marker under such a token begins nothing, but names
%% the request of the call that it is in.
%%
%% A message without a token takes the process' own away, and what is called until it is put back is
%% not traced. Who finds that, the end of the request or a nested entry, says so in the end marker:
%% such a request has no right numbers. Putting it back by hand is the caller's word that nothing
%% was missed. Another request's token, of who gave back what this one waited for, hides nothing:
%% the end marker says which it was.
%%
%% Labels that are not ours (the application's own use of seq_trace) are never overwritten nor
%% cleared.
-module(kprof_token).

-export([
    set/3,
    clear/0,
    run/5,
    begin_web/3,
    send_web/4,
    end_web/4
]).
-export([label/0, restore/2, drop/0, remembered/0, remember/1]).

-define(KEY, '$kprof_token').
-define(TIMEOUT_MS, 60000).
-define(MAX_IDENTITY, 255).
-define(IS_WEB(Kind), (Kind =:= web orelse element(1, Kind) =:= inside)).
% of ours: kprof_entry
-define(BY_ENTRY(Label), (Label band 16#80000000 =/= 0)).

%% @doc Begins a request, or counts a nested one. `OneIn' is the sampling in force.
-spec set(kprof_slots:slots(), pos_integer(), kprof:identity()) -> ok.
set(Slots, OneIn, Identity) ->
    Now = now_ms(),
    case get(?KEY) of
        undefined ->
            _ = enter(Slots, OneIn, Identity, Now, 0),
            ok;
        {Label, Depth, At, Kind} ->
            case live(Slots, Label, At, Now) of
                true ->
                    _ = put(?KEY, {Label, Depth + 1, At, Kind}),
                    restore_lost(Slots, Label);
                false ->
                    _ = enter(Slots, OneIn, Identity, Now, Label),
                    ok
            end
    end.

%% @doc Ends the request of this process, or leaves a nested one.
-spec clear() -> ok.
clear() ->
    case get(?KEY) of
        undefined ->
            clear_carried();
        {_, 1, _, carried} ->
            _ = erase(?KEY),
            ok;
        {_, 1, _, web} ->
            ok;
        {Label, 1, _, own} ->
            _ = erase(?KEY),
            finish(kprof_slots:find(), Label, ok);
        {Label, Depth, At, Kind} ->
            _ = put(?KEY, {Label, Depth - 1, At, Kind}),
            ok
    end.

%% @doc Runs `apply(M, F, A)' as a request: ends it with the outcome and re-raises what was thrown,
%% with its stack. Inside a request it is a plain apply.
-spec run(kprof_slots:slots(), pos_integer(), kprof:identity(), {module(), atom()} | fun(), [
    term()
]) ->
    term().
run(Slots, OneIn, Identity, What, Args) ->
    Now = now_ms(),
    Begun =
        case get(?KEY) of
            undefined ->
                enter(Slots, OneIn, Identity, Now, 0);
            {Label, _, At, _} ->
                case live(Slots, Label, At, Now) of
                    true -> {nested, restore_lost(Slots, Label)};
                    false -> enter(Slots, OneIn, Identity, Now, Label)
                end
        end,
    case Begun of
        {begun, New} ->
            try call(What, Args) of
                Result ->
                    finish_own(Slots, New, ok),
                    Result
            catch
                Class:Reason:Stack ->
                    finish_own(Slots, New, outcome(Class)),
                    erlang:raise(Class, Reason, Stack)
            end;
        {carried, _} ->
            %% the pair that enter counted is not needed: the function's own end is no end of the
            %% request
            _ = erase(?KEY),
            call(What, Args);
        _ ->
            call(What, Args)
    end.

%% @doc Begins the request of a web server's helper. A server's processes serve one request after
%% the other and hear from those before: a token that came with a message is no reason to take this
%% request for a part of that one. `Ask({full, Label})' tells whether the request, with this label,
%% is traced fully, whatever the sampler does; it has none inside of an entry's call. `Ask(forced)'
%% tells whether the request is to be traced although the sampler leaves it out, and is asked only
%% then; `Ask(name)' what it is called, before its time
%% begins: of one that is traced, and of each one while identities have weights; `Ask(parent)' what
%% has asked for one that is traced. Gives the label, 0 when the request was left out, or `off' when
%% there is nothing to end: inside a request that this process has marked, or under a foreign token.
-spec begin_web(
    kprof_slots:slots(),
    pos_integer(),
    fun((forced | {full, kprof_slots:label() | none}) -> boolean())
    | fun((name) -> kprof:identity())
    | fun((parent) -> kprof_trace_parent:parent() | undefined)
) ->
    kprof_slots:label() | 0 | off.
begin_web(Slots, OneIn, Ask) ->
    Now = now_ms(),
    case get(?KEY) of
        {Label, _, _, Kind} when ?IS_WEB(Kind) ->
            %% its end was never told: nobody knows when it was
            _ = erase(?KEY),
            finish(Slots, Label, Kind, {error, token_lost}),
            draw_web(Slots, OneIn, Ask, Now);
        {Label, _, At, _} ->
            case live(Slots, Label, At, Now) of
                true ->
                    restore_lost(Slots, Label),
                    off;
                false ->
                    draw_web(Slots, OneIn, Ask, Now)
            end;
        undefined ->
            draw_web(Slots, OneIn, Ask, Now)
    end.

draw_web(Slots, OneIn, Ask, Now) ->
    Before = label(),
    case Before =/= undefined andalso kprof_slots:whose(Slots, Before) of
        foreign ->
            _ = erase(?KEY),
            kprof_slots:count_unsampled(Slots),
            off;
        current when ?BY_ENTRY(Before) ->
            %% the entry has drawn already
            _ = Ask({full, none}),
            begun_web(
                Slots, kprof_slots:next(Slots), Ask(name), Now, {inside, seq_trace:get_token()}, Ask
            );
        _ ->
            N = kprof_slots:next(Slots),
            Name =
                case kprof_slots:is_weighted(Slots) of
                    true -> Ask(name);
                    false -> later
                end,
            case
                Ask({full, label(Slots, N)}) orelse
                    kprof_sampling:takes(Slots, OneIn, N, Name) orelse
                    Ask(forced)
            of
                true ->
                    begun_web(
                        Slots,
                        N,
                        case Name of
                            later -> Ask(name);
                            _ -> Name
                        end,
                        Now,
                        web,
                        Ask
                    );
                false ->
                    left_out(Slots, Now, Before, web)
            end
    end.

%% @doc Tells the outcome and the name of a request of {@link begin_web/3} whose response is on its
%% way: it goes on, under its token, until {@link end_web/4}, or until its process ends.
-spec send_web(kprof_slots:label(), kprof:outcome(), boolean(), kprof:identity()) -> ok.
send_web(Label, Outcome, Lost, Identity) ->
    Slots = kprof_slots:find(),
    case Slots =/= undefined andalso is_open(Slots, Label) of
        true ->
            Before = seq_trace:get_token(),
            _ =
                (Lost orelse seen(Slots, Label, kind(Label), Before) =:= token_lost) andalso
                    kprof_slots:mark_lost(Slots, Label),
            _ = seq_trace:set_token(label, Label),
            kprof_mark:request_end({Outcome, sending, identity(Identity)});
        false ->
            ok
    end.

%% @doc Ends a request of {@link begin_web/3}, in whatever process, which should have its token.
%% `Lost': a process that worked for it was without. `Identity' names the request, unless a call
%% has; `undefined' leaves it the name of its begin.
-spec end_web(kprof_slots:label() | 0, kprof:outcome(), boolean(), kprof:identity()) -> ok.
end_web(Label, Outcome, Lost, Identity) ->
    Kind = kind(Label),
    _ = Kind =/= none andalso erase(?KEY),
    Slots = kprof_slots:find(),
    _ = Label =:= 0 andalso Slots =/= undefined andalso drop_of_entry(Slots),
    _ =
        Lost andalso Label > 0 andalso Slots =/= undefined andalso
            kprof_slots:mark_lost(Slots, Label),
    finish(Slots, Label, Kind, {Outcome, kept, identity(Identity)}).

%% How this process has begun a web request, `none' if it has not.
kind(Label) ->
    case get(?KEY) of
        {Label, _, _, Kind} when ?IS_WEB(Kind) -> Kind;
        _ -> none
    end.

%% An entry that was called in a request that the sampler left out has left its token.
drop_of_entry(Slots) ->
    Label = label(),
    case Label =/= undefined andalso kprof_slots:whose(Slots, Label) of
        current when ?BY_ENTRY(Label) -> drop();
        _ -> ok
    end.

%% --- entering ---

%% Abandoned is the label that this process' own dictionary gave up, 0 when none: it does not count
%% as carried.
enter(Slots, OneIn, Identity, Now, Abandoned) ->
    Label = label(),
    case Label =/= undefined andalso kprof_slots:whose(Slots, Label) of
        foreign ->
            _ = erase(?KEY),
            %% inside a request of another node nothing is left out: it has begun there
            _ = kprof_slots:is_label(Label) orelse kprof_slots:count_unsampled(Slots),
            foreign;
        current when Label =/= Abandoned ->
            case kprof_slots:ended(Slots, Label) of
                true ->
                    sample(Slots, OneIn, Identity, Now, Label);
                false ->
                    _ = put(?KEY, {Label, 1, Now, carried}),
                    _ =
                        ?BY_ENTRY(Label) andalso Identity =/= undefined andalso
                            kprof_mark:request_begin(identity(Identity)),
                    {carried, Label}
            end;
        _ ->
            sample(Slots, OneIn, Identity, Now, Label)
    end.

sample(Slots, OneIn, Identity, Now, Before) ->
    N = kprof_slots:next(Slots),
    case kprof_sampling:takes(Slots, OneIn, N, Identity) of
        true -> {begun, begun(Slots, N, Identity, Now, own)};
        false -> {begun, left_out(Slots, Now, Before, own)}
    end.

begun(Slots, N, Identity, Now, Kind) ->
    Label = label(Slots, N),
    ok = give(Slots, Label),
    _ = put(?KEY, {Label, 1, Now, Kind}),
    case Kind of
        own -> kprof_mark:request_begin(identity(Identity));
        _ -> kprof_mark:web_begin(identity(Identity))
    end,
    Label.

%% Its parent is looked for before its time begins.
begun_web(Slots, N, Identity, Now, Kind, Ask) ->
    Parent = Ask(parent),
    Label = begun(Slots, N, Identity, Now, Kind),
    _ = Parent =:= undefined orelse kprof_mark:trace_parent(Parent),
    Label.

label(Slots, N) ->
    kprof_slots:base(Slots) bor (N band 16#7fffffff).

left_out(Slots, Now, Before, Kind) ->
    kprof_slots:count_unsampled(Slots),
    _ = Before =:= undefined orelse drop(),
    _ = put(?KEY, {0, 1, Now, Kind}),
    0.

%% A dictionary entry counts while its request can still be open: of this trace, not ended
%% elsewhere, not too old.
live(_, _, At, Now) when Now - At > ?TIMEOUT_MS ->
    false;
live(_, 0, _, _) ->
    true;
live(Slots, Label, _, _) ->
    kprof_slots:whose(Slots, Label) =:= current andalso not kprof_slots:ended(Slots, Label).

%% A message without a token has cleared ours, or one with another request's has replaced it: take
%% it up again, and remember that it was lost.
restore_lost(_, 0) ->
    ok;
restore_lost(Slots, Label) ->
    _ = label() =:= Label orelse kprof_slots:mark_lost(Slots, Label),
    restore(Slots, Label).

%% --- leaving ---

clear_carried() ->
    case kprof_slots:find() of
        undefined ->
            ok;
        Slots ->
            Label = label(),
            case Label =/= undefined andalso kprof_slots:whose(Slots, Label) of
                % it ends when the entry returns
                current when ?BY_ENTRY(Label) -> ok;
                current -> finish(Slots, Label, ok);
                stale -> drop();
                _ -> ok
            end
    end.

%% Only if the function that ran has not ended the request itself.
finish_own(Slots, Label, Outcome) ->
    case get(?KEY) of
        {Label, _, _, own} ->
            _ = erase(?KEY),
            finish(Slots, Label, Outcome);
        _ ->
            ok
    end.

finish(Slots, Label, End) ->
    finish(Slots, Label, own, End).

finish(_, 0, _, _) ->
    ok;
finish(undefined, _, _, _) ->
    drop();
finish(Slots, Label, Kind, End) ->
    Before = seq_trace:get_token(),
    Foreign = is_tuple(Before) andalso kprof_slots:whose(Slots, element(2, Before)) =:= foreign,
    case is_open(Slots, Label) of
        true ->
            Seen = seen(Slots, Label, Kind, Before),
            _ = seq_trace:set_token(label, Label),
            kprof_mark:request_end(with_token_word(Seen, End)),
            kprof_slots:mark_ended(Slots, Label);
        false ->
            ok
    end,
    Entered = by_entry(Slots, Before),
    case Kind of
        _ when Foreign ->
            _ = seq_trace:set_token(Before),
            ok;
        {inside, _} when Entered ->
            _ = seq_trace:set_token(Before),
            ok;
        {inside, Token} ->
            _ = seq_trace:set_token(Token),
            ok;
        _ ->
            drop()
    end.

is_open(Slots, Label) ->
    kprof_slots:whose(Slots, Label) =:= current andalso not kprof_slots:ended(Slots, Label).

by_entry(Slots, {_, Label, _, _, _}) ->
    kprof_slots:whose(Slots, Label) =:= current andalso ?BY_ENTRY(Label);
by_entry(_, _) ->
    false.

%% What became of the token. Where every request has one, another request's has come with what that
%% one gave back, and nothing was missed. Else there may have been none in between. Inside of an
%% entry's call it may be that of another such call within, and the collector knows whose the work
%% is.
seen(Slots, Label, Kind, Token) ->
    case kprof_slots:lost(Slots, Label) of
        true ->
            token_lost;
        false when is_tuple(Token), element(2, Token) =:= Label -> kept;
        false when is_tuple(Token), tuple_size(Kind) =:= 2 ->
            case kprof_slots:whose(Slots, element(2, Token)) of
                current -> kept;
                _ -> token_lost
            end;
        false when is_tuple(Token) ->
            Other = element(2, Token),
            case
                kprof_slots:whose(Slots, Other) =:= current andalso
                    kprof_sampling:takes_all(Slots)
            of
                true -> {token_changed, Other};
                false -> token_lost
            end;
        false ->
            token_lost
    end.

with_token_word(kept, End) -> End;
with_token_word(Word, {Outcome, kept, Identity}) -> {Outcome, Word, Identity};
with_token_word(_, {_, token_lost} = End) -> End;
with_token_word(Word, Outcome) -> {Outcome, Word}.

%% --- what a process has ---

%% @doc The label of its token, `undefined' without one.
-spec label() -> term().
label() ->
    case seq_trace:get_token(label) of
        {label, Label} -> Label;
        _ -> undefined
    end.

%% @doc Gives it the token of a request again, unless it carries a foreign one.
-spec restore(kprof_slots:slots(), kprof_slots:label()) -> ok.
restore(Slots, Label) ->
    case label() of
        Label ->
            ok;
        undefined ->
            give(Slots, Label);
        Other ->
            _ =
                kprof_slots:whose(Slots, Other) =:= foreign orelse
                    give(Slots, Label),
            ok
    end.

%% The flags travel with the token, to other nodes, too. Where there is no system tracer they cost
%% nothing.
give(Slots, Label) ->
    _ = seq_trace:set_token(label, Label),
    _ = kprof_slots:takes(Slots) andalso
        begin
            _ = seq_trace:set_token(send, true),
            seq_trace:set_token('receive', true)
        end,
    ok.

%% @doc Takes its token away.
-spec drop() -> ok.
drop() ->
    _ = seq_trace:set_token([]),
    ok.

%% @doc The request that it remembers, with its label: the one that it has begun, or entered.
-spec remembered() -> {kprof_slots:label() | 0, tuple()} | undefined.
remembered() ->
    case get(?KEY) of
        undefined -> undefined;
        Request -> {element(1, Request), Request}
    end.

%% @doc Has it remember what {@link remembered/0} gave.
-spec remember({kprof_slots:label() | 0, tuple()} | undefined) -> ok.
remember(undefined) ->
    _ = erase(?KEY),
    ok;
remember({_, Request}) ->
    _ = put(?KEY, Request),
    ok.

%% --- small things ---

call({M, F}, Args) -> apply(M, F, Args);
call(Fun, Args) -> apply(Fun, Args).

outcome(error) -> error;
outcome(exit) -> exit;
outcome(throw) -> throw.

%% What travels in the trace message must be small, whatever the caller passes.
identity({A, B}) -> {part(A), part(B)};
identity(X) -> part(X).

part(A) when is_atom(A) -> A;
part(B) when is_binary(B), byte_size(B) =< ?MAX_IDENTITY -> B;
part(B) when is_binary(B) -> binary:copy(binary:part(B, 0, ?MAX_IDENTITY));
part(L) when is_list(L) -> text(L, ?MAX_IDENTITY, []);
part(_) -> undefined.

text([C | Cs], N, Acc) when is_integer(C), C >= 0, C =< 16#10ffff, N > 0 ->
    text(Cs, N - 1, [C | Acc]);
text(Rest, N, Acc) when Rest =:= []; N =:= 0 -> lists:reverse(Acc);
text(_, _, _) ->
    undefined.

now_ms() ->
    erlang:monotonic_time(millisecond).
