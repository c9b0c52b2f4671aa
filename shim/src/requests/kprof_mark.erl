%% SPDX-License-Identifier: Apache-2.0
%% @doc The marker functions. They do nothing; tracing their calls is what tells the collector that
%% a request begins and ends, in order with everything else that the process does. They live in a
%% module of their own and are always called with the module's name, so that the compiler cannot
%% inline them.
-module(kprof_mark).

-type changed() :: {token_changed, kprof:label()}.
-type word() :: within | from_now | no_more.

-export([request_begin/1, web_begin/1, trace_parent/1, request_end/1, says/1, patterns/1]).
-export_type([word/0]).

%% @doc A request begins under the token that the process has just been given.
-spec request_begin(kprof:identity()) -> ok.
request_begin(_Identity) ->
    ok.

%% @doc The same for a request that ends in the process where it begins: the death of that process
%% ends it, too, in an error. The identity is for one that nothing else names.
-spec web_begin(kprof:identity()) -> ok.
web_begin(_Identity) ->
    ok.

%% @doc The request of the process' token was asked for by a span of somebody's trace: as
%% {@link kprof_trace_parent:read/1} has it.
-spec trace_parent(kprof_trace_parent:parent()) -> ok.
trace_parent(_Parent) ->
    ok.

%% @doc The request of the process' token ends. `token_lost': its process was without the token for
%% a while, and calls in that time are missing; `token_changed': it had that label instead in the
%% end, another request's. The identity is for a request that has none yet.
-spec request_end(
    kprof:outcome()
    | {kprof:outcome(), token_lost | changed()}
    | {kprof:outcome(), token_lost | changed() | kept, kprof:identity()}
) -> ok.
request_end(_End) ->
    ok.

%% @doc The process says that it works for the request of its token: `from_now' on, until a message
%% brings another one's, or, `within' a function, whatever messages bring, until it says `no_more'.
-spec says(word()) -> ok.
says(_Word) ->
    ok.

%% @doc The trace patterns of the markers: token and argument travel in the message, and no return
%% is traced. From its first request on, the death of a process is traced, too. `Flags' are what a
%% process is traced for while it works for a request.
-spec patterns([garbage_collection | running]) -> [{mfa(), [tuple()]}].
patterns(Flags) ->
    Spec = fun(Trace) ->
        [{['$1'], [{is_seq_trace}], [{message, {{{get_seq_token}, '$1'}}} | Trace]}]
    end,
    Begins = Spec([{trace, [], [exiting | Flags]}]),
    [
        {{?MODULE, request_begin, 1}, Begins},
        {{?MODULE, web_begin, 1}, Begins},
        {{?MODULE, trace_parent, 1}, Spec([])},
        {{?MODULE, says, 1}, Spec([])},
        {{?MODULE, request_end, 1}, Spec([{trace, Flags, []} || Flags =/= []])}
    ].
