%% SPDX-License-Identifier: Apache-2.0
%% @doc The label of the request that a process works for, as the application says it by hand: what
%% it carries past where tokens do not go, takes up elsewhere, and puts back ({@link
%% kprof:set_current_label/1}, {@link kprof:with_token/2}, {@link kprof:wrap/1}). What a process has
%% begun itself is {@link kprof_token}'s.
-module(kprof_label).

-export([current/0, set/1, with/2, wrap/1, take_up/1, put_back/1]).

% the label that the process works for within a function (with/2)
-define(SAID, '$kprof_said').

%% @doc The label of the request that this process works for, `undefined' when there is none of the
%% running trace.
-spec current() -> kprof_slots:label() | undefined.
current() ->
    case kprof_slots:find() of
        undefined ->
            undefined;
        Slots ->
            Label = kprof_token:label(),
            case kprof_slots:whose(Slots, Label) of
                current -> Label;
                _ -> undefined
            end
    end.

%% @doc Takes up the request `Label', or with `undefined' drops the one that the process has. A
%% label that is not of the running trace is ignored, and so is the call when the process carries a
%% foreign token.
-spec set(kprof_slots:label() | undefined) -> ok.
set(Label) ->
    _ =
        enter(Label) =:= Label andalso is_integer(Label) andalso
            kprof_mark:says(from_now),
    ok.

%% Gives the label that the process has then, if it is one of ours.
enter(undefined) ->
    ok = kprof_token:remember(undefined),
    Slots = kprof_slots:find(),
    case Slots =:= undefined orelse kprof_slots:whose(Slots, kprof_token:label()) of
        W when W =:= current; W =:= stale -> kprof_token:drop();
        _ -> ok
    end,
    undefined;
enter(Label) when is_integer(Label) ->
    Slots = kprof_slots:find(),
    case Slots =/= undefined andalso kprof_slots:whose(Slots, Label) of
        current ->
            %% a request that was begun here is still ended here
            _ =
                is_mine(Label, kprof_token:remembered()) orelse kprof_token:remember(undefined),
            ok = kprof_token:restore(Slots, Label),
            kprof_token:label();
        _ ->
            undefined
    end.

%% @doc Runs `Fun' for the request `Label', or for none; then the process has again what it had
%% before.
-spec with(kprof_slots:label() | undefined, fun(() -> Result)) -> Result.
with(Label, Fun) ->
    Before = take_up(Label),
    try
        Fun()
    after
        put_back(Before)
    end.

%% @doc Takes up the request `Label', as {@link set/1}, until {@link put_back/1} gets what
%% this gives: within that the process works for it, whatever messages bring. The request that this
%% process began is what it has again, whatever token a message had brought it meanwhile.
-spec take_up(kprof_slots:label() | undefined) -> {term(), term(), term()}.
take_up(Label) ->
    Remembered = kprof_token:remembered(),
    Token = seq_trace:get_token(),
    Said = get(?SAID),
    _ =
        case enter(Label) of
            Label when is_integer(Label) ->
                _ = put(?SAID, Label),
                kprof_mark:says(within);
            _ ->
                ok
        end,
    {Remembered,
        case is_mine(Label, Remembered) of
            true -> seq_trace:get_token();
            false -> Token
        end, Said}.

%% @doc Puts back what the process had before.
-spec put_back({term(), term(), term()}) -> ok.
put_back({Remembered, Token, Said}) ->
    ok = kprof_token:remember(Remembered),
    say_again(get(?SAID), Said),
    _ = seq_trace:set_token(Token),
    ok.

%% The function is over within which the process worked for the request of `Label', and it works for
%% that of `Before' again.
say_again(Label, Label) ->
    ok;
say_again(Label, undefined) ->
    _ = seq_trace:set_token(label, Label),
    _ = erase(?SAID),
    kprof_mark:says(no_more);
say_again(_, Before) ->
    _ = seq_trace:set_token(label, Before),
    _ = put(?SAID, Before),
    kprof_mark:says(within).

%% @doc A function that runs `Fun' for the request which this process works for. It may lie in a
%% table when kprof leaves the node, and a function of our own could not be called any more then: so
%% it is one that the standard library interprets.
-spec wrap(fun()) -> fun().
wrap(Fun) ->
    {arity, Arity} = erlang:fun_info(Fun, arity),
    case current() of
        Label when is_integer(Label), Arity =< 4 ->
            {value, Wrapped, _} = erl_eval:expr(wrapped(Arity), [{'Label', Label}, {'Fun', Fun}]),
            Wrapped;
        _ ->
            Fun
    end.

%% fun(A, ...) ->
%%     Before = erlang:function_exported(kprof_label, take_up, 1) andalso
%%         (catch kprof_label:take_up(Label)),
%%     try Fun(A, ...) after is_tuple(Before) andalso (catch kprof_label:put_back(Before)) end
%% end
wrapped(Arity) ->
    Args = lists:sublist([{var, 1, V} || V <- ['A', 'B', 'C', 'D']], Arity),
    Call = fun(M, F, As) -> {call, 1, {remote, 1, {atom, 1, M}, {atom, 1, F}}, As} end,
    Take = {'catch', 1, Call(?MODULE, take_up, [{var, 1, 'Label'}])},
    Back = {'catch', 1, Call(?MODULE, put_back, [{var, 1, 'Before'}])},
    Known = Call(erlang, function_exported, [
        {atom, 1, ?MODULE}, {atom, 1, take_up}, {integer, 1, 1}
    ]),
    Taken = Call(erlang, is_tuple, [{var, 1, 'Before'}]),
    {'fun', 1,
        {clauses, [
            {clause, 1, Args, [], [
                {match, 1, {var, 1, 'Before'}, {op, 1, 'andalso', Known, Take}},
                {'try', 1, [{call, 1, {var, 1, 'Fun'}, Args}], [], [], [
                    {op, 1, 'andalso', Taken, Back}
                ]}
            ]}
        ]}}.

is_mine(Label, {Label, _}) -> true;
is_mine(_, _) -> false.
