%% SPDX-License-Identifier: Apache-2.0
%% @doc The native tracer: an erl_tracer in C (`c_src/kprof_native.c'), which writes trace events
%% into memory of its own, 2 MB for each thread of the VM, and hands them out as frames of the trace
%% stream. {@link kprof_library} loads it; until then each function but {@link load/1} and {@link
%% is_loaded/0} is an error.
%%
%% The VM calls {@link enabled/3}, {@link enabled_call/3} and {@link trace/5} in traced processes.
%% The other functions may be called by any process, and never wait.
-module(kprof_native).

-export([load/1, is_loaded/0]).
-export([enabled/3, enabled_call/3, trace/5]).
-export([open/1, read/1, totals/1, close/1]).

-export_type([state/0, options/0]).

-type state() :: pos_integer().
%% A trace: the tracer is `{kprof_native, State}'. No two traces of a node have the same.
-type options() :: #{apart => boolean(), ring_bytes => pos_integer()}.
%% apart: it is of a full trace's own trace session. ring_bytes: of a thread's memory, a power of
%% two from 64 KB to 64 MB.

%% @doc Loads the library, whose path is given without `.so'.
-spec load(file:filename()) -> ok | {error, Why :: string()}.
load(Path) ->
    case erlang:load_nif(Path, 0) of
        ok -> ok;
        {error, {reload, _}} -> ok;
        {error, {_, Text}} -> {error, Text}
    end.

%% @doc Whether the library is loaded.
-spec is_loaded() -> boolean().
is_loaded() ->
    try totals(0) of
        _ -> true
    catch
        error:badarg -> true;
        error:not_loaded -> false
    end.

%% @private
-spec enabled(atom(), state(), term()) -> trace | discard | remove.
enabled(_Tag, _State, _Tracee) ->
    erlang:nif_error(not_loaded).

%% @private
-spec enabled_call(atom(), state(), term()) -> trace | discard.
enabled_call(_Tag, _State, _Tracee) ->
    erlang:nif_error(not_loaded).

%% @private
-spec trace(atom(), state(), term(), term(), map()) -> ok.
trace(_Tag, _State, _Tracee, _What, _Options) ->
    erlang:nif_error(not_loaded).

%% @doc Begins a trace. `full': there are as many as there may be, 8. `busy': somebody else is
%% beginning one at this moment.
-spec open(options()) -> state() | full | busy.
open(_Options) ->
    erlang:nif_error(not_loaded).

%% @doc What has come since the last time, in the order of its times, 128 KB at most: whole frames;
%% and whether there is more already. `busy': somebody else is reading at this moment. A
%% trace that is closed is a badarg.
-spec read(state()) -> {Frames :: [binary()], More :: boolean()} | busy.
read(_State) ->
    erlang:nif_error(not_loaded).

%% @doc How many messages were read so far, the bytes of all frames, and how many messages were told
%% in these as dropped. `busy' and badarg as of {@link read/1}.
-spec totals(state()) ->
    {Messages :: non_neg_integer(), Bytes :: non_neg_integer(), Dropped :: non_neg_integer()}
    | busy.
totals(_State) ->
    erlang:nif_error(not_loaded).

%% @doc Ends a trace. What was not read by then is gone. Who still has it as tracer loses that by
%% itself.
-spec close(state()) -> ok.
close(_State) ->
    erlang:nif_error(not_loaded).
