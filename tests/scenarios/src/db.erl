%% SPDX-License-Identifier: Apache-2.0
%% The database: a process that answers one request after another. What fails in it fails again in
%% the caller.
-module(db).

-export([start/0, request/1, network_request/1]).

-spec start() -> ok.
start() ->
    scenario_embedded:server(?MODULE, fun({From, Ref, What}) ->
        From !
            {Ref,
                try
                    {ok, network_request(What)}
                catch
                    error:Why -> {raise, Why}
                end}
    end).

-spec request(term()) -> term().
request(What) ->
    Ref = make_ref(),
    ?MODULE ! {self(), Ref, What},
    receive
        {Ref, {ok, Answer}} -> Answer;
        {Ref, {raise, Why}} -> error(Why)
    after 5000 -> exit(timeout)
    end.

-spec network_request(term()) -> integer().
network_request({fail, Id}) -> error({db_down, Id});
network_request({_, Id}) -> Id * 2.
