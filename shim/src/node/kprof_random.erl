%% SPDX-License-Identifier: Apache-2.0
%% @doc Random bytes that nobody can guess.
-module(kprof_random).

-export([bytes/1]).

%% @doc So many of them. They are not from OTP's crypto, which the node may not have, or not have
%% loaded.
-spec bytes(pos_integer()) -> binary().
bytes(Size) ->
    case file:open("/dev/urandom", [read, raw, binary]) of
        {ok, File} ->
            {ok, Bytes} = file:read(File, Size),
            ok = file:close(File),
            Bytes;
        {error, _} ->
            list_to_binary([rand:uniform(256) - 1 || _ <- lists:seq(1, Size)])
    end.
