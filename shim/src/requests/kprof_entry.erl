%% SPDX-License-Identifier: Apache-2.0
%% @doc Entry functions: requests of an application that has no markers. A call of such a function
%% gives its process a token, and the request ends when that call returns; the collector sees to the
%% latter. The application is not changed: all this is one trace pattern a function.
%%
%% A label is a small integer, since `set_seq_token' must not be given what a match specification
%% builds:
%% ```
%%   bits  57..32  the base of the running trace (kprof_slots)
%%         31      1: of an entry; labels of the markers have 0
%%         30..28  the trace control word before the call, modulo 8
%%         27..0   and what it was when it was counted up
%% '''
%% The trace control word, one for the node, counts the calls, and is what the sampler draws from.
%% Match specifications count it up without a lock, but its setting is an exchange: of two calls
%% that count at the same time both see it in another place, and their labels differ all the same.
%% And one that set it back, since the kernel had taken the processor from it after its look, sees
%% that, and puts it forward.
%%
%% No match specification runs when a function returns: the process keeps its token until it is
%% given another one or gets a message without one. A call that finds a token of ours, of this trace
%% or an earlier one, therefore begins a request; whether it is inside of an open one the collector
%% knows. Under a marker's token it is a plain tier, under a token of somebody else's it is not
%% traced at all.
-module(kprof_entry).

-export([spec/2, upgrades/1, count/0, uncount/1, unsampled/3, unsampled/4, clear_tokens/0]).

-export_type([settings/0]).

-import(kprof_match, [done/1, all/1, first/1]).

-type settings() :: #{
    base := non_neg_integer(),
    olds := [non_neg_integer()],
    one_in := non_neg_integer(),
    flags := [garbage_collection | running],
    returns := none | whole,
    stale => [kprof_slots:label()],
    takes => boolean(),
    _ => _
}.
%% The label bases of the running trace and of earlier ones, the sampling (0: none), what processes
%% are traced for besides, and whether the entry's return is sent with its value, or told by the
%% caller's name alone (process flag return_to), as of a tier. stale: labels of requests that are
%% over, under which an entry begins one as it does under those of earlier traces. takes: the tracer
%% is told when messages under its token are sent and taken.

-define(COUNT, 16#fffffff).
% labels below this are the markers'
-define(MARKERS, 16#80000000).
-define(LABELS, 16#100000000).

%% @doc The trace pattern of an entry function. `Rows' are those of {@link kprof_match:rows/2}; the
%% last of them takes every call.
-spec spec([kprof_match:row()], settings()) -> [tuple()].
spec(
    Rows,
    #{base := Base, olds := Olds, one_in := OneIn, flags := Flags, returns := Returns} =
        Settings
) ->
    Drawn = drawn(OneIn),
    {Call, Return} =
        case Returns of
            whole -> {fun(Identity) -> said(Identity) end, [{exception_trace}]};
            none -> {fun(Identity) -> [{caller} | said(Identity)] ++ [none] end, []}
        end,
    Begin = fun(Identity) ->
        [
            done({set_seq_token, Event, true})
         || Event <- [send, 'receive'], maps:get(takes, Settings, false)
        ] ++
            [message([entry | Call(Identity)])] ++
            Return ++
            % from OTP 27 on a killed process ends no call
            [done({trace, [], [exiting | Flags]})]
    end,
    %% Of calls at the same time more than one may have been drawn for one number, and only whose
    %% number that is begins. Others are left out, with the message that stands before.
    Draw = fun(Begun) ->
        [done({set_seq_token, label, label(Base)}), not_back()] ++
            case OneIn > 1 of
                true -> [first([all([is_drawn(given(), OneIn) | Begun]), no_token()])];
                false -> Begun
            end
    end,
    Stale = maps:get(stale, Settings, []),
    Old =
        [within(B, B + ?LABELS) || B <- Olds, B =/= 0] ++
            [kprof_match:stale(Stale) || Stale =/= []],
    Current = within(Base + ?MARKERS, Base + ?LABELS),
    Plain = fun(Identity) ->
        [within(Base, Base + ?MARKERS), message(Call(Identity)) | Return]
    end,
    Inner = message([left_out, entry]),
    LeaveOut = fun(Whose, Message) -> [Whose, done(count_up()), Message, no_token()] end,
    [
        {Head, [{'not', {is_seq_trace}} | Drawn ++ Guards],
            [{message, false} || OneIn =/= 1] ++ Draw(Begin(Identity))}
     || {Head, Guards, Identity} <- Rows
    ] ++
        [{'_', [{'not', {is_seq_trace}}], [count_up(), {message, false}]} || OneIn =/= 1] ++
        [
            {Head, Guards, [
                first(
                    [
                        all(
                            [first([Current | Old]) | Drawn] ++
                                [first([all([Current, Inner]), {message, false}]) || OneIn =/= 1] ++
                                Draw(Begin(Identity))
                        )
                    ] ++
                        [all(LeaveOut(Current, Inner)) || OneIn =/= 1] ++
                        [all(LeaveOut(first(Old), {message, false})) || OneIn =/= 1, Old =/= []] ++
                        [all(Plain(Identity)), {message, false}]
                )
            ]}
         || {Head, Guards, Identity} <- Rows
        ].

%% @doc The trace patterns of functions that begin to serve a connection which has become a
%% websocket. The request that asked for it, an entry's, is over then, and what its process does
%% next for the socket is none of it: its token goes. Its return would come only with the socket's
%% end, or leave the token.
-spec upgrades(non_neg_integer()) -> [kprof_tracer:pattern()].
upgrades(Base) ->
    Ours = [
        within(Base + ?MARKERS, Base + ?LABELS),
        message([upgraded]),
        no_token()
    ],
    Spec = [{'_', [{is_seq_trace}], [first([all(Ours), {message, false}])]}],
    [
        {MFA, Spec}
     || MFA <- [
            {cowboy_websocket, takeover, 7},
            {'Elixir.Bandit.WebSocket.Handler', handle_connection, 2}
        ]
    ].

drawn(0) -> [{'=:=', 1, 0}];
drawn(1) -> [];
drawn(OneIn) -> [is_drawn({get_tcw}, OneIn)].

is_drawn(Count, OneIn) -> {'=:=', {'rem', Count, OneIn}, 0}.

said(ask) -> [ask, '$_'];
said(Identity) -> [Identity].

message(Words) -> {message, {list_to_tuple([{get_seq_token} | Words])}}.

%% Of all trace labels (any term can be one) those from Low on below High.
within(Low, High) ->
    Label = {element, 2, {get_seq_token}},
    {'andalso', {'>=', Label, Low}, {'<', Label, High}}.

label(Base) ->
    {'bor', {'bor', Base bor ?MARKERS, {'bsl', {'band', {get_tcw}, 7}, 28}},
        {'band', count_up(), ?COUNT}}.

%% Counts, and is what the word was before.
count_up() -> {set_tcw, {'band', {'+', {get_tcw}, 1}, ?COUNT}}.

%% The count has not gone back behind that of the label just given; else it goes on behind it.
not_back() ->
    {'orelse', {'>', {get_tcw}, given()}, done({set_tcw, {'band', {'+', given(), 1}, ?COUNT}})}.

%% The number of the call that has just been given its label.
given() -> {'band', {element, 2, {get_seq_token}}, ?COUNT}.

no_token() -> done({set_seq_token, sequential_trace_token, []}).

%% @doc Begins to count entry calls from 0. Returns the trace control word that was in force, for
%% {@link uncount/1}.
-spec count() -> non_neg_integer().
count() ->
    erlang:system_flag(trace_control_word, 0).

%% @doc Puts back the trace control word of somebody else.
-spec uncount(non_neg_integer()) -> ok.
uncount(Before) ->
    _ = erlang:system_flag(trace_control_word, Before),
    ok.

%% @doc How many of the calls counted from `From' on, up to and without `To', the sampler left out.
-spec unsampled(non_neg_integer(), non_neg_integer(), non_neg_integer()) -> non_neg_integer().
unsampled(From, To, OneIn) ->
    unsampled(From, To, OneIn, OneIn).

%% @doc The same where some of the calls were drawn by one sampling and some by another, nobody
%% knows which: how many both left out.
%%
%% None where the count has gone back a little: a thread that was interrupted between reading and
%% writing it took back what others had counted meanwhile. Back by more than half it began anew.
-spec unsampled(
    non_neg_integer(), non_neg_integer(), non_neg_integer(), non_neg_integer()
) -> non_neg_integer().
unsampled(From, To, One, Other) when To >= From ->
    Drawn = fun(OneIn) -> multiples(To, OneIn) - multiples(From, OneIn) end,
    (To - From) - Drawn(One) - Drawn(Other) + Drawn(common(One, Other));
unsampled(From, To, _, _) when From - To =< ?COUNT div 2 ->
    0;
unsampled(From, To, One, Other) ->
    unsampled(From, ?COUNT + 1, One, Other) + unsampled(0, To, One, Other).

%% Multiples of OneIn from 0 on below N.
multiples(_, 0) -> 0;
multiples(N, OneIn) -> (N + OneIn - 1) div OneIn.

%% The least multiple of both; 0 where one of them draws nothing.
common(0, _) -> 0;
common(_, 0) -> 0;
common(A, B) -> A div divisor(A, B) * B.

%% The greatest of both.
divisor(A, 0) -> A;
divisor(A, B) -> divisor(B, A rem B).

%% @doc Takes the tokens off all processes and messages, if all that processes have are ours: they
%% would travel on for ever, and make each message dearer. Looks at every process; where somebody
%% else uses seq_trace, too, ours are left to get lost by themselves.
-spec clear_tokens() -> ok | foreign.
clear_tokens() ->
    Slots = kprof_slots:find(),
    Owners = lists:usort([
        kprof_slots:whose(Slots, element(2, Token))
     || Slots =/= undefined,
        Pid <- processes(),
        {_, Token} <- [process_info(Pid, sequential_trace_token)],
        is_tuple(Token)
    ]),
    case lists:member(foreign, Owners) of
        true ->
            foreign;
        false ->
            _ = Owners =/= [] andalso seq_trace:reset_trace(),
            ok
    end.
