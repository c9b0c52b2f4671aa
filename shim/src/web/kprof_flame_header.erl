%% SPDX-License-Identifier: Apache-2.0
%% @doc The header by which a web request asks to be traced fully (`flame_header' of {@link
%% kprof:start_trace/1}).
%%
%% ```
%%  request's process            kprof_life                   collector
%%   header fits ── begins ──────> ── flame, its label ─────────> full trace of that label
%%   waits 50 ms at most              full, known processes <────
%%                                 patterns, flags on the process and on those
%%   goes on <──────────────────── stands
%%   ends ───── ended ───────────> all off; full_stopped ───────> keeps the profile
%% '''
%% The request's process does nothing of that but wait. When it has waited for long enough, or one
%% is under way, or there were too many, it goes on untraced, and the log says why. Only what the
%% sampler would do for it otherwise is done then.
%%
%% Whoever can send requests can send headers. So traces are rare whoever asks: five at once, then
%% one every twelve seconds, and ten times as long as the patterns have stood none more.
-module(kprof_flame_header).

-export([set/2, begins/3, inside_entry/2, ended/1, name/1, name_of/1, fits/2]).

-export_type([header/0, ask/0]).

-define(WAIT_MS, 50).
-define(LIFE, kprof_life).

-type secret() :: fun(() -> binary()).
-type header() :: {Name :: binary(), secret() | any, kprof_flame:wanted()}.
%% The name is in lower case; the secret is not shown by what prints terms.
-type ask() :: #{
    label := kprof_slots:label(),
    process := pid(),
    answer := reference(),
    % native time
    until := integer()
}.
%% What kprof_life is asked: it answers `{Answer, stands | {no, Why}}', to the alias Answer.

%% @doc Sets the header; `undefined' is none.
-spec set(kprof_slots:slots(), undefined | header()) -> ok.
set(Slots, undefined) ->
    kprof_slots:set_flame_header(Slots, false);
set(Slots, {Name, Secret, _}) ->
    true = ets:insert(kprof_guard, {flame_header, Name, Secret}),
    kprof_slots:set_flame_header(Slots, true).

%% @doc Whether the request that is about to begin in this process, with this label, is traced
%% fully. `Header' looks up a header by its name.
-spec begins(kprof_slots:slots(), fun((binary()) -> term()), kprof_slots:label()) -> boolean().
begins(Slots, Header, Label) ->
    is_asked(Slots, Header) andalso may_begin(Slots, Label).

%% @doc The same inside of an entry's call: that began before anybody could ask.
-spec inside_entry(kprof_slots:slots(), fun((binary()) -> term())) -> false.
inside_entry(Slots, Header) ->
    is_asked(Slots, Header) andalso
        refused(Slots, "it is inside of an entry's call, and began with that").

is_asked(Slots, Header) ->
    kprof_slots:may_flame(Slots) andalso
        try
            [{_, Name, Secret}] = ets:lookup(kprof_guard, flame_header),
            fits(Header(Name), Secret)
        catch
            _:_ -> false
        end.

%% @doc Whether a header's value is the secret, in a time that tells nothing but whether they are as
%% long as each other.
-spec fits(term(), secret() | any) -> boolean().
fits(undefined, _) ->
    false;
fits(Value, any) ->
    kprof_web:is_true(Value);
fits(Value, Secret) ->
    Given = kprof_web:first_value(Value),
    Wanted = Secret(),
    byte_size(Given) =:= byte_size(Wanted) andalso
        differences(binary_to_list(Given), binary_to_list(Wanted), 0) =:= 0.

%% Of lists: OTP 29 loads no such matching of binaries as OTP 25 compiles.
differences([A | As], [B | Bs], Found) ->
    differences(As, Bs, Found bor (A bxor B));
differences([], [], Found) ->
    Found.

may_begin(Slots, Label) ->
    Free = kprof_slots:full(Slots) =:= 0,
    case Free andalso kprof_slots:take_flame(Slots) of
        true -> without_token(fun() -> begin_trace(Slots, Label) end);
        false when Free -> refused(Slots, "there were too many lately");
        false -> refused(Slots, "another one is traced so")
    end.

begin_trace(Slots, Label) ->
    case ask(Label) of
        stands -> true;
        {no, Why} -> refused(Slots, Why)
    end.

%% Nothing that comes too late stays in the mailbox of somebody else's process.
ask(Label) ->
    case whereis(?LIFE) of
        undefined ->
            {no, "kprof stops"};
        Life ->
            Until =
                erlang:monotonic_time() + erlang:convert_time_unit(?WAIT_MS, millisecond, native),
            Answer = erlang:monitor(process, Life, [{alias, reply_demonitor}]),
            tell({begins, #{label => Label, process => self(), answer => Answer, until => Until}}),
            receive
                {Answer, Said} -> Said;
                {'DOWN', Answer, process, _, _} -> {no, "kprof stops"}
            after ?WAIT_MS ->
                _ = erlang:demonitor(Answer, [flush]),
                receive
                    {Answer, Said} -> Said
                after 0 ->
                    tell({gave_up, Label}),
                    {no, "the patterns did not stand within 50 ms"}
                end
            end
    end.

%% One line a second is enough for the log, which kprof_life writes: a log may keep who writes.
refused(Slots, Why) ->
    _ = kprof_slots:take_refusal(Slots) andalso without_token(fun() -> tell({refused, Why}) end),
    false.

%% @doc The request of this label has ended.
-spec ended(kprof_slots:label() | 0) -> ok.
ended(Label) ->
    Slots = kprof_slots:find(),
    _ =
        Label =/= 0 andalso Slots =/= undefined andalso kprof_slots:full(Slots) =:= Label andalso
            without_token(fun() -> tell({ended, Label}) end),
    ok.

tell(What) ->
    _ =
        try
            ?LIFE ! {?MODULE, What}
        catch
            % it is gone
            error:badarg -> ok
        end,
    ok.

%% Messages carry the sender's token to who gets them, and take the receiver's away without one.
without_token(Fun) ->
    Token = seq_trace:set_token([]),
    try
        Fun()
    after
        _ = seq_trace:set_token(Token)
    end.

%% @doc What the profile of the request of this process is called, that {@link begins/3}.
-spec name(kprof_slots:label()) -> binary().
name(Label) ->
    <<"flame-", (string:lowercase(integer_to_binary(Label, 36)))/binary>>.

%% @doc The same for who answers a request; `undefined' when it is not traced so.
-spec name_of(kprof_slots:label() | 0 | off) -> binary() | undefined.
name_of(Request) when is_integer(Request), Request > 0 ->
    Slots = kprof_slots:find(),
    case Slots =/= undefined andalso kprof_slots:full(Slots) of
        Request -> name(Request);
        _ -> undefined
    end;
name_of(_) ->
    undefined.
