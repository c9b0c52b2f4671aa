%% SPDX-License-Identifier: Apache-2.0
%% What happened, as the simulated node knows it. Times are ns from the start of the capture; every
%% event has a time of its own.

-define(MS, 1000000).
-define(S, 1000000000).
% how long the collector waits after a request's end
-define(GRACE, ?S).
% --request-timeout of the replay
-define(TIMEOUT, (5 * ?S)).
% how late a message may come behind later ones of other processes
-define(DISORDER, (4 * ?MS)).

-record(span, {
    id,
    req,
    pid,
    tier,
    start,
    stop = open,
    error = false,
    % the span below it on its process' stack, of whatever request
    below = none,
    % the process that its token came from
    from,
    % the function that called it, for tiers without return values
    caller,
    gc = 0,
    off = 0
}).

-record(req, {
    id,
    label,
    identity,
    % mark | call: which messages carry the identity
    named,
    % its begin
    start,
    pid,
    % its first end marker; error, stop_pid: of the end as the collector can know it
    stop = none,
    error,
    stop_pid,
    % the span that it is, when it began with an entry
    root = none,
    % child => {spawner, span open there (or none), time of the call, time of its return}
    links = #{},
    % {Process, Time} of begin, spans' starts and ends; latest first
    acts = [],
    % message => how long it has waited, of those that have brought calls, if only by way of others
    waited = #{}
}).

%% One trace message. about: the request of a call or marker, as [Id]; else [].
-record(event, {time, proc, about = [], kind, term}).

%% What the collector can know of a request (model_reader). closed: the place in the stream of the
%% message with which it was closed; stop, error, stop_pid: its end; lost: its end marker told that
%% the token was; blind: how many of its calls have no value.
-record(fate, {key, fate, closed, stop, error, stop_pid, damaged, lost, blind}).
