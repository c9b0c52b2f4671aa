%% SPDX-License-Identifier: Apache-2.0
%% What Kprof.Plug asks Plug's module of this name, and what else scenario_web_plug needs of it: as
%% Plug 1 does it.
-module('Elixir.Plug.Conn').

-export([register_before_send/2, put_resp_header/3, send_resp/3, send_chunked/2]).

-spec register_before_send(map(), fun((map()) -> map())) -> map().
register_before_send(#{state := unset, private := Private} = Conn, Callback) when
    is_function(Callback, 1)
->
    Conn#{private := Private#{before_send => [Callback | maps:get(before_send, Private, [])]}}.

-spec put_resp_header(map(), binary(), binary()) -> map().
put_resp_header(#{resp_headers := Headers} = Conn, Name, Value) ->
    Conn#{resp_headers := lists:keystore(Name, 1, Headers, {Name, Value})}.

-spec send_resp(map(), pos_integer(), iodata()) -> map().
send_resp(Conn, Status, Body) ->
    #{socket := S, resp_headers := Headers} =
        Sent = before_send(Conn#{status := Status}, set),
    _ = scenario_web_http:reply(S, Status, Headers, Body),
    Sent#{state := sent}.

-spec send_chunked(map(), pos_integer()) -> map().
send_chunked(Conn, Status) ->
    #{socket := S} = Sent = before_send(Conn#{status := Status}, set_chunked),
    _ = scenario_web_http:begin_chunks(S, Status),
    Sent#{state := chunked}.

before_send(#{private := Private} = Conn, State) ->
    lists:foldl(
        fun(Callback, C) -> #{state := State} = Callback(C) end,
        Conn#{state := State},
        maps:get(before_send, Private, [])
    ).
