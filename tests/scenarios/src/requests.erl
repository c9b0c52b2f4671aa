%% SPDX-License-Identifier: Apache-2.0
%% Handles a request with the help of the database's and the accountant's processes.
-module(requests).

-export([handle_request/2]).

-spec handle_request(atom(), integer()) -> term().
handle_request(throws, Id) ->
    throw({thrown, Id});
handle_request(Kind, Id) ->
    accounting:submit(Kind),
    Answer = db:request({Kind, Id}),
    {Kind, Answer}.
