%% What happened, as the simulated node knows it. Times are ns from the start of the capture; every event has a time of its own.

-define(MS, 1000000).
-define(S, 1000000000).
-define(GRACE, ?S).            % how long the collector waits after a request's end
-define(TIMEOUT, (5 * ?S)).    % --request-timeout of the replay
-define(DISORDER, (4 * ?MS)).  % how late a message may come behind later ones of other processes

-record(span, {
    id, req, pid, tier,
    start, stop = open,
    error = false,
    below = none,     % the span below it on its process' stack, of whatever request
    from,             % the process that its token came from
    caller,           % the function that called it, for tiers without return values
    gc = 0, off = 0}).

-record(req, {
    id, label, identity,
    named,             % mark | call: which messages carry the identity
    again = false,     % its label was another request's before
    start, pid,        % its begin
    stop = none, error = false, stop_pid = none,
    lost = false,      % its end marker told that the token was lost
    blurred = never,   % since when the collector is told too little to know, and must say incomplete
    doubted = false,   % it may say so, or what it likes
    links = #{},       % child => {spawner, span open there (or none)}
    acts = [],         % {Process, Time} of begin, spans' starts and ends, spawns; latest first
    latest = #{}}).    % process => last thing that it did for this request: ok | exception

%% One trace message. about: the requests that it tells of; opens: it is one that makes the collector know of them.
-record(event, {time, proc, about = [], opens = false, kind, term}).
