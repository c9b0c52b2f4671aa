%% SPDX-License-Identifier: Apache-2.0
%% @doc Finds out that tiers are called while nothing begins a request: no entry is called, no
%% marker and no token comes from elsewhere, so that not one message is made and every table stays
%% empty. Nothing else can tell an application that does nothing from one whose requests nobody has
%% marked.
%%
%% As long as no request has begun the calls of the traced functions are counted, in looks of ten
%% seconds with fifty in between: by the VM itself (call_count), which costs a call some nanoseconds
%% and makes no message. With the first request that ends for good. From OTP 27 on the counters are
%% in kprof's own trace session; before, the node has one of each kind, and a function that somebody
%% else counts is left to him.
-module(kprof_unmarked).

-export([new/0, look/5, disarmed/1, calls/1, fields/1, told/1]).

-export_type([unmarked/0]).

-define(LOOK_MS, 10000).
-define(REST_MS, 50000).

-record(unmarked, {
    state = idle ::
        idle | {counting, Since :: integer(), [mfa()]} | {resting, Since :: integer()} | over,
    % one look has gone by: before that it may be too early to say anything
    looked = false :: boolean(),
    % calls that earlier looks have found
    before = 0 :: non_neg_integer(),
    % and this one
    now = 0 :: non_neg_integer(),
    % of all these, to the collector's ledger
    told = 0 :: non_neg_integer()
}).
-opaque unmarked() :: #unmarked{}.

%% @doc Of a trace that begins.
-spec new() -> unmarked().
new() ->
    #unmarked{}.

%% @doc Takes a look, at `Now' in ms. `Begun': whether this trace has seen a request or a token.
%% `MFAs' are what it traces.
-spec look(integer(), boolean(), kprof_tracer:tracer(), [mfa()], unmarked()) -> unmarked().
look(_, _, _, _, #unmarked{state = over} = U) ->
    U;
look(_, true, Tracer, _, U) ->
    %% what was counted before the first request stays in the ledger
    (stop(Tracer, U))#unmarked{state = over};
look(Now, false, Tracer, MFAs, #unmarked{state = idle} = U) ->
    U#unmarked{state = {counting, Now, kprof_tracer:count_calls(Tracer, MFAs)}};
look(Now, false, Tracer, _, #unmarked{state = {counting, Since, Counted}} = U0) ->
    % a reload takes a counter away
    U = U0#unmarked{now = max(U0#unmarked.now, kprof_tracer:counted_calls(Tracer, Counted))},
    case Now - Since >= ?LOOK_MS of
        true -> (stop(Tracer, U))#unmarked{state = {resting, Now}, looked = true};
        false -> U
    end;
look(Now, false, Tracer, MFAs, #unmarked{state = {resting, Since}} = U) when
    Now - Since >= ?REST_MS
->
    look(Now, false, Tracer, MFAs, U#unmarked{state = idle});
look(_, false, _, _, U) ->
    U.

stop(Tracer, #unmarked{state = {counting, _, Counted}} = U) ->
    ok = kprof_tracer:count_no_calls(Tracer, Counted),
    added(U);
stop(_, U) ->
    U.

added(#unmarked{before = Before, now = Now} = U) ->
    U#unmarked{before = Before + Now, now = 0}.

%% @doc All is undone, the counters too.
-spec disarmed(unmarked()) -> unmarked().
disarmed(#unmarked{state = over} = U) -> U;
disarmed(U) -> (added(U))#unmarked{state = idle}.

%% @doc The calls that were found while nothing had begun a request for ten seconds or more; 0 as
%% soon as something has.
-spec calls(unmarked()) -> non_neg_integer().
calls(#unmarked{state = over}) -> 0;
calls(#unmarked{looked = false}) -> 0;
calls(#unmarked{before = Before, now = Now}) -> Before + Now.

%% @doc What the collector is told: unmarked, that number, and unmarked_calls, what has been added
%% to it since the last time.
-spec fields(unmarked()) -> #{unmarked := non_neg_integer(), unmarked_calls := non_neg_integer()}.
fields(U) ->
    #{unmarked => calls(U), unmarked_calls => max(0, calls(U) - U#unmarked.told)}.

%% @doc It was told that.
-spec told(unmarked()) -> unmarked().
told(U) ->
    U#unmarked{told = max(U#unmarked.told, calls(U))}.
