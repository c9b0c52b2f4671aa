%% SPDX-License-Identifier: Apache-2.0
%% Calls between layers. What fails in the server is raised again, same class and reason, in the
%% caller: so one failing storage process shows as a failure of every layer above it.
-module(shop_call).

-export([one/2, many/1, answer/1]).

-define(TIMEOUT, 30000).

-spec one(atom(), term()) -> term().
one(Server, Message) ->
    unwrap(gen_server:call(Server, Message, ?TIMEOUT)).

%% All at once. Every answer is awaited before the first failure is raised: none is left behind
%% in the mailbox.
-spec many([{atom(), term()}]) -> [term()].
many(Calls) ->
    Requests = [gen_server:send_request(Server, Message) || {Server, Message} <- Calls],
    Answers = [gen_server:receive_response(Request, ?TIMEOUT) || Request <- Requests],
    [received(Answer) || Answer <- Answers].

%% The server's side: run Fun and make its result or its exception an answer for one/2, many/1.
-spec answer(fun(() -> term())) -> {ok, term()} | {raise, error | exit | throw, term()}.
answer(Fun) ->
    try
        {ok, Fun()}
    catch
        Class:Reason -> {raise, Class, Reason}
    end.

received({reply, Answer}) -> unwrap(Answer);
received(timeout) -> exit(timeout);
received({error, {Reason, _Server}}) -> exit(Reason).

unwrap({ok, Value}) -> Value;
unwrap({raise, Class, Reason}) -> erlang:raise(Class, Reason, []).
