%% SPDX-License-Identifier: Apache-2.0
%% misultin's requests, for scenario_web_misultin: messages to the connection's process.
-module(misultin_req).

-export([get/2, respond/4, stream/2, stream/4]).

-type request() :: {misultin_req, pid(), term()}.

-spec get(atom(), request()) -> term().
get(What, {misultin_req, Pid, _}) ->
    Pid ! {self(), {reqinfo, What}},
    receive
        {Pid, Info} -> Info
    end.

-spec respond(pos_integer(), list(), iodata(), request()) -> term().
respond(Status, Headers, Body, {misultin_req, Pid, _}) -> Pid ! {response, Status, Headers, Body}.

-spec stream(iodata() | close, request()) -> term().
stream(close, {misultin_req, Pid, _}) -> Pid ! stream_close;
stream(Data, {misultin_req, Pid, _}) -> Pid ! {stream_data, Data}.

-spec stream(head, pos_integer(), list(), request()) -> term().
stream(head, Status, Headers, {misultin_req, Pid, _}) -> Pid ! {stream_head, Status, Headers}.
