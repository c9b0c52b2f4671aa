%% SPDX-License-Identifier: Apache-2.0
%% @doc The public interface of kprof's shim.
%%
%% A request begins with {@link set_token/0} and ends with {@link clear_token/0}, or is one call of
%% {@link do_apply/3}. In between its token travels with messages, spawns and gen_server calls;
%% calls of the functions that {@link start_trace/1} names as tiers are then timed by the collector,
%% in whatever process they run.
%%
%% While tracing is off, {@link set_token/0} and {@link clear_token/0} cost some nanoseconds and
%% need no server process.
-module(kprof).

-export([start/0, stop/0, unload/0, start_trace/1, stop_trace/0, status/0, format_error/1]).
-export([flame/1, sample/1]).
-export([
    set_token/0, set_token/1,
    clear_token/0,
    do_apply/3,
    get_current_label/0,
    set_current_label/1,
    with_token/2,
    wrap/1,
    begin_request/2,
    send_request/2,
    end_request/2,
    flame_name/1,
    misultin_req_loop/2
]).

-export_type([
    identity/0,
    outcome/0,
    tier/0,
    entry/0,
    option/0,
    flame_options/0,
    sample_options/0,
    sampling_options/0,
    trigger/0,
    trigger_options/0,
    label/0,
    identity_fun/0,
    stats_dumper/0,
    stats_row/0,
    slow_call_callback/0,
    span/0,
    tls/0
]).

-type text() :: atom() | string() | binary().
-type identity() :: text() | {text(), text()}.
%% What groups requests. `{a, b}' becomes `a_b', a pair of method and path `GET /path'; `undefined'
%% names nothing.

-type outcome() :: ok | error | exit | throw.
-type label() :: kprof_slots:label().
-type tier() :: {text(), mfa()} | {text(), mfa(), #{returns => none | whole}}.
%% A function to time, under a name. See {@link start_trace/1} for `returns'.

-type entry() :: mfa() | {mfa(), #{returns => none | whole}}.
%% A function whose calls are requests.

-type identity_fun() :: fun(({module(), atom(), [term()]}) -> identity() | undefined).
-type stats_row() :: #{atom() | binary() => term()}.
%% One row of a flush: bucket_start (ISO 8601 text), resolution_s, node, identity, tier, requests,
%% calls, errors, async_calls (integers), total_us, self_us, async_us, min_us, max_us (microseconds,
%% floats).

-type stats_dumper() ::
    false | {file, file:name_all()} | {'fun', fun(([stats_row()]) -> term())} | {pid, pid()}.
%% What is done with this node's rows of every flush: one JSON line a row in a file, a call of the
%% fun with the list of rows, or a message `{kprof_stats, [stats_row()]}' to the process.

-type slow_call_callback() :: fun((Spans :: [span()], Identity :: binary()) -> any()).
-type span() :: #{atom() | binary() => term()}.
%% One call of a tier within a slow request. tier (binary), depth (0 below the request), pid (text,
%% such as `<<"<0.123.0>">>'), start_us (since the request's begin), duration_us, self_us (less what
%% the spans below it cover, and its waiting for them to begin), wait_us (how long it waited for its
%% process at most, after a message or spawn from another one; 0 for all other spans), all in
%% microseconds as floats, async (boolean: it ended after the request), outcome (ok, error, open: no
%% return was seen, unknown: its tier sends no returns). Names that a newer collector sends besides
%% are binaries.

-type tls() :: #{
    cacertfile => file:name_all(),
    cacerts => binary(),
    certfile => file:name_all(),
    cert => binary(),
    keyfile => file:name_all(),
    key => binary(),
    server_name => string() | binary()
}.
%% TLS 1.2 or 1.3 towards the collector. Its certificate is always verified: against the authorities
%% in `cacertfile' (those of this node's system without), and for the name `server_name' (the host
%% of the option `collector' without). `certfile' and `keyfile' are this node's own, for a collector
%% that wants one (`--tls-ca'). Files are PEM and are read when tracing starts; `cacerts', `cert'
%% and `key' are such files' content instead. Needs OTP's application ssl, which is started and
%% stays so.

-type option() ::
    {tier_config, [tier()]}
    | {entry, entry() | [entry()]}
    | {identity_f, identity_fun()}
    | {print_calls, boolean()}
    | {stats_dumper, stats_dumper()}
    | {collector, {inet:hostname() | inet:ip_address() | binary(), inet:port_number()}}
    | {secret_file, file:name_all()}
    | {secret, binary()}
    | {tls, false | tls()}
    | {sample, {one_in, pos_integer()} | {per_second, pos_integer()}}
    | {sampling, false | sampling_options()}
    | {sample_weights, #{identity() => number()}}
    | {force_header, Name :: text() | {Name :: text(), PerSecond :: 1..1000}}
    | {flame_header, Name :: text(), Secret :: any | text()}
    | {flame_header, Name :: text(), Secret :: any | text(), flame_options()}
    | {slow_call_threshold, non_neg_integer()}
    | {slow_call_callback, slow_call_callback()}
    | {trace_gc, boolean()}
    | {trace_scheduling, boolean()}
    | {triggers, [trigger()]}
    | {tracer, port | native | auto}
    | {wait, boolean()}.
%% See {@link start_trace/1}.

-type trigger() ::
    {run_queue | message_queue_len | memory | reductions, {above, number()}}
    | {run_queue | message_queue_len | memory | reductions, {above, number()}, trigger_options()}
    | {tier_p99, Tier :: text(), {above_ms, number()}}
    | {tier_p99, Tier :: text(), {above_ms, number()}, trigger_options()}.
-type trigger_options() :: #{
    for => number(),
    high_water => boolean(),
    every => number(),
    name => text(),
    sample => sample_options()
}.
%% See the option `triggers' of {@link start_trace/1}.

-type flame_options() :: #{
    requests => pos_integer(),
    seconds => pos_integer(),
    identity => identity(),
    name => text(),
    applications => [text()],
    modules => [text()],
    all_modules => boolean()
}.
%% See {@link flame/1}.

-type sample_options() :: sample_options(seconds).
%% Of a run of stack sampling that ends: see {@link sample/1}.

-type sampling_options() :: sample_options(slice).
%% Of one that goes on for ever, in one profile after the other: see the option `sampling' of
%% {@link start_trace/1}.

-type sample_options(Length) :: #{
    Length => pos_integer(),
    hz => pos_integer(),
    top => pos_integer(),
    by => reductions | memory | message_queue_len | binary,
    every_ms => pos_integer(),
    budget => number(),
    registered => [text()],
    pids => [pid()],
    application => text(),
    name => text(),
    label => text()
}.
%% What both have: whom to look at, how often, at what cost, and what the profiles are called.
%% `Length' is `seconds', of the whole run, or `slice', the seconds of one of its profiles.

-define(OFF_OR(Slots, OneIn, Off, On),
    case persistent_term:get(kprof_slots, undefined) of
        undefined ->
            Off;
        Slots ->
            case atomics:get(Slots, 1) of
                0 -> Off;
                OneIn -> On
            end
    end
).

%% @doc Starts the application `kprof'. Nothing is traced yet. Started already is `ok'.
-spec start() -> ok | {error, term()}.
start() ->
    case application:start(kprof) of
        {error, {already_started, kprof}} -> ok;
        Result -> Result
    end.

%% @doc Stops tracing and the application, and takes everything back that it put into the node.
-spec stop() -> ok | {error, term()}.
stop() ->
    case application:stop(kprof) of
        {error, {not_started, kprof}} -> ok;
        Result -> Result
    end.

%% @doc Stops the application and removes its modules from the node, as if it had never been loaded.
-spec unload() -> ok.
unload() ->
    kprof_app:unload().

%% @doc Starts tracing. Everything is checked before anything is traced; {@link format_error/1}
%% makes a line of text of the reason. Once started, the shim keeps its connection to the collector
%% by itself until {@link stop_trace/0}.
%%
%% <ul>
%% <li>`{entry, Entry | [Entry]}', with Entry `{M, F, A}' or `{{M, F, A}, #{returns => none}}': each
%% call of this function is a request, from the call to its return, in an application that has no
%% markers. It is a tier, too, under the name that tier_config gives it or under its own. A call of
%% an entry inside of another's, in the same process, is part of that one's request. What its
%% process does after the return is no part of it, but what others do then because of its messages
%% is taken for asynchronous work, until the process gets a message without a token, or for a
%% second: who calls a tier under its label later is taken out of the trace. At the end all tokens
%% are taken off all processes, unless the application uses seq_trace itself. Name the function that
%% handles one request, not the loop around it. Markers and web helpers that begin inside of its
%% calls name the request. With `returns => none' what it returns, a whole conn perhaps, stays at
%% home: its request ends when the VM tells that control is back in its caller. One that ended in an
%% exception which its caller has not caught itself is incomplete then; one whose caller has counts
%% as ok.</li>
%% <li>`{tier_config, [{Name, {M, F, A}} | {Name, {M, F, A}, #{returns => none | whole}}]}',
%% required without an entry: the functions to time. `[]', or options of the collector alone, time
%% nothing: for a node whose stacks are to be sampled. A module that is not on the node is told as a
%% warning, and its tier is traced within some 10 ms once the module is loaded; so is a tier whose
%% module was loaded anew. With `returns => none' no returned value is sent and tail calls stay tail
%% calls: for tiers that return large terms. Their errors are not seen.</li>
%% <li>`{identity_f, fun(({M, F, Args}) -> Identity | undefined)}': names a request from the calls
%% of its tiers; the first that is not `undefined' counts. Patterns and guards are compiled into the
%% match specification; a fun that does more is asked in a process of its own on this node.</li>
%% <li>`{print_calls, boolean()}', default false: prints finished requests as trees where
%% start_trace was called, ten a second at most.</li>
%% <li>`{stats_dumper, false | {file, Path} | {'fun', F} | {pid, Pid}}', default false.</li>
%% <li>`{collector, {Host, Port}}', default `{"127.0.0.1", 4711}'.</li>
%% <li>`{secret_file, Path}', or the bytes themselves, `{secret, Binary}': what the collector was
%% given as `--secret-file', 16 to 1024 bytes. Both sides prove that they know it before anything
%% else is said; it never travels. The file must be closed to others than its owner and group. Needs
%% OTP's application crypto. It does not encrypt: for that there is</li>
%% <li>`{tls, false | tls()}', default false: the connections to the collector go through TLS, see
%% {@type tls()}.</li>
%% <li>`{sample, {one_in, N}}', default 1: one request in N gets a token. `{sample, {per_second,
%% R}}': at most R requests a second do, in bursts of a tenth of a second's worth; not for entry
%% functions.</li>
%% <li>`{sampling, #{}}': looks at the stacks of the busiest processes all the time, whether
%% requests are traced or not, with the options of {@link sample/1} but `seconds'. Usual are 5 looks
%% a second (`hz') at each of 20 processes (`top'), chosen anew every 10 seconds (`every_ms'), and
%% half a percent of one processor (`budget'): some 100 MB a day in the database. Where its records
%% would take more than 200 MB a day it looks less often, and tells so. It goes on in another
%% profile after an hour (`slice', in seconds, from 5 to 43200), or where one is full. Its profiles
%% are kept under the label `always' (`label'), which have room of their own. `backtrace_depth'
%% stays as it is, so stacks have 8 frames unless the node has set another number; deeper ones are
%% told as cut. Beside it {@link sample/1}, `kprof sample' and `kprof top' work as
%% ever. Default: false.</li>
%% <li>`{sample_weights, #{Identity => W}}': a request whose {@link set_token/1} names that identity
%% counts as W requests to the sampler, so that it is W times as likely to be traced, or never with
%% 0. W is a number up to a million; without one it is 1. So does one of a web server's helper that
%% its begin names so, `"GET /users/:id"' say: `Kprof.Plug' knows no route then, unless its option
%% `route' makes it, but `"GET /users/*"'.</li>
%% <li>`{force_header, Name}' or `{force_header, {Name, PerSecond}}': a web request with this
%% header, `x-trace-request: true' say (or `1', `yes', `on'; of several values the first one
%% counts), gets a token although `sample' leaves it out; so do 5 a second at most unless said
%% otherwise, and fewer, but one, while the guard lowers the sampling. Whoever can send requests can
%% send headers: a proxy in front should take this one off, or its name be known to few. Default:
%% none.</li>
%% <li>`{flame_header, Name, Secret}': a web request with this header, whose value is the secret (16
%% to 255 letters, digits and `-._~+/='), is traced fully, and its flame graph kept, as {@link
%% flame/1} does it. With `any' in the secret's place `x-trace-request: true' is enough: for test
%% systems, as strangers can send that. The request waits for it 50 ms at most. One at a time, five
%% a minute at most, fewer where they take long; any other goes on as it would without, and the log
%% says why. The profile's name is in the answer's header `x-kprof-profile', where the helper can
%% set it, and in the log. With mochiweb, httpd and misultin it is in the log only.
%% `{flame_header, Name, Secret, #{modules => …}}': with the options of {@link flame/1} but
%% `requests', `identity' and `name'. Default: none.</li>
%% <li>`{slow_call_threshold, Microseconds}': requests longer than this are kept whole by the
%% collector.</li>
%% <li>`{slow_call_callback, fun((Spans, Identity) -> any())}': called on this node with every slow
%% request, five a second at most. It runs in a process of its own, one call at a time, 20 wait at
%% most and the rest is thrown away; a call is killed after 5 seconds or at 64 MB. `Spans' is a list
%% of {@type span()} in the order of their begin, `Identity' a binary.</li>
%% <li>`{trace_gc, boolean()}', `{trace_scheduling, boolean()}', default false: tell for how long
%% processes collected garbage, or were scheduled out, while they worked for a request. Only
%% processes that hold a token pay for it. Refused where it could kill the node: both before OTP
%% 25.3 (otp#6448), trace_gc from OTP 27 on (otp#11624, not mended in any release that this one
%% knows).</li>
%% <li>`{triggers, [{Of, {above, N}} | {Of, {above, N}, Options}]}': a run of stack sampling begins
%% by itself when a value of this node has been above N for a while. `Of' is `run_queue' (processes
%% that are ready to run), `message_queue_len' (of the longest queue of a process), `memory' (in
%% use, bytes), `reductions' (a second); or `{tier_p99, Tier, {above_ms, N}}': the 99th percentile
%% of a tier's calls, as the collector counts them in each of its flushes, where it has seen any.
%% Looked at once a second. `Options' is a map: `for' seconds it must be above without a pause (5;
%% 0: once is enough), or with `high_water => true' it begins at once, whenever the value is above N
%% and higher than in the five minutes before; `every': seconds until the trigger may begin another
%% one (600); `sample': the options of the run, as of {@link sample/1}, by default 30 seconds of the
%% busiest processes by what the trigger is about, labelled with the trigger's name; `name': what it
%% is called, `run_queue' say, or `tier_p99 http'. 16 at most. `kprof trigger' adds some, and tells
%% how they stand. What happened is in the log and in `kprof nodes --history'.</li>
%% <li>`{tracer, port | native | auto}', default `port': what the VM traces to. `native' is a
%% library of kprof's in the VM: a traced call costs the node less than one through a trace port,
%% and what waits to be sent is bounded, 2 MB for each thread of the VM. Where it cannot be loaded
%% it is a port all the same, and one line of warning says why. `auto' takes it on releases of OTP
%% that it was tried on. It is for Linux, on x86-64 and ARM64. Full traces go the same way as the
%% tiers.</li>
%% <li>`{wait, boolean()}', default false: a function that is not in its module is no error; it is
%% traced once the module has been loaded with it.</li>
%% </ul>
-spec start_trace([option()]) -> ok | {error, term()}.
start_trace(Options) ->
    %% first, for our own tracing would look like somebody else's
    Free = lists:member(status(), [idle, not_started]),
    case Free andalso kprof_options:check(Options) of
        false -> {error, already_tracing};
        {ok, Checked} -> kprof_life:start_trace(Checked);
        {error, _} = Error -> Error
    end.

%% @doc Stops tracing. Messages that are on their way to the collector are delivered first (3
%% seconds at most), and it has read that they were the last (1 second).
-spec stop_trace() -> ok | {error, not_started | not_tracing}.
stop_trace() ->
    kprof_life:stop_trace().

%% @doc What the shim does now: `idle' (no trace), `tracing', `waiting' (for the collector),
%% `tripped' (by the guard), `paused' (with `kprof trace').
-spec status() -> not_started | idle | tracing | waiting | tripped | paused.
status() ->
    kprof_life:status().

%% @doc Traces every function that some requests of this node run, while the node is traced, and
%% returns the number of the profile that the collector keeps: `kprof flame --profile NUMBER' draws
%% it. The collector does as for `kprof flame NODE': before OTP 27 the tiers rest meanwhile, and it
%% waits for a full trace that runs already. A node asks for one at a time. It returns when the
%% profile is kept: after `requests' complete requests (20), or `seconds' (30) with those that came
%% until then.
%% <ul>
%% <li>`identity': only requests that are called so.</li>
%% <li>`applications', `modules': whose functions; modules may have `*' in them. Without either all
%% that are loaded but those of OTP, with `all_modules => true' these, too. The time of a function
%% that is not traced is its caller's.</li>
%% <li>`name': what the profile is called.</li>
%% </ul>
-spec flame(flame_options()) -> {ok, Profile :: pos_integer()} | {error, term()}.
flame(Options) ->
    case kprof_flame:check(Options) of
        {ok, Wanted} -> kprof_life:flame(Wanted);
        Error -> Error
    end.

%% @doc Looks at the stacks of this node's busiest processes for a while, as `kprof sample NODE'
%% does, and returns what the collector keeps of it: `profile' is the number by which `kprof flame
%% --profile NUMBER' draws it; `samples', `unchanged' (looks at processes that had done nothing),
%% `unanswered', `held_ms', `late_ms', `cost_us' (of processor time) are of the run. Nothing needs
%% to be traced, `start_trace([{tier_config, []}])' is enough; but there must be a connection to the
%% collector. A node asks for one at a time, and it is sampled by one at a time. It returns when the
%% profile is kept.
%% <ul>
%% <li>`seconds': for so long, 60.</li>
%% <li>`hz': looks a second at each process, 99.</li>
%% <li>`top', `by', `every_ms': at the 100 of which `reductions' (or `memory', `message_queue_len',
%% `binary') changed most, chosen anew every 5000 ms.</li>
%% <li>`registered', `pids': at these instead; `application': at all of this application.</li>
%% <li>`budget': percent of one processor that it uses at most, 2; else it looks less often.</li>
%% <li>`name': what the profile is called. `label': profiles with one have room of their own, so
%% that those which come by themselves push out none that somebody asked for.</li>
%% </ul>
-spec sample(sample_options()) ->
    {ok, #{profile := pos_integer(), atom() => non_neg_integer()}} | {error, term()}.
sample(Options) ->
    case kprof_sample_options:check(Options) of
        {ok, Wanted} -> kprof_life:sample(Wanted);
        Error -> Error
    end.

%% @doc One line of text for a reason that {@link start_trace/1} or another function of this module
%% returned.
-spec format_error(term()) -> string().
format_error(Reason) ->
    kprof_error:format(Reason).

%% @doc Begins a request without an identity. Same as `set_token(undefined)'.
-spec set_token() -> ok.
set_token() ->
    ?OFF_OR(Slots, OneIn, ok, kprof_token:set(Slots, OneIn, undefined)).

%% @doc Begins a request in this process. Does nothing while tracing is off. Inside a request the
%% outer token stays, and this call and its {@link clear_token/0} only count. A token that was begun
%% here more than 60 s ago is taken for abandoned and replaced. A process that carries a seq_trace
%% token of the application's own keeps it, and the request is counted as not sampled.
-spec set_token(identity()) -> ok.
set_token(Identity) ->
    ?OFF_OR(Slots, OneIn, ok, kprof_token:set(Slots, OneIn, Identity)).

%% @doc Ends the request of this process with the outcome `ok', also when the token came with a
%% message. Without a request it does nothing.
%%
%% When the process is without its token at that moment (it received a message without one, or
%% called another node with rpc or erpc) the request ends all the same, but is counted as
%% incomplete: its last calls were not traced. So it is when a nested {@link set_token/0} or {@link
%% do_apply/3} found the token missing on the way. Whoever takes it up again right after such a call
%% with {@link set_current_label/1} loses nothing.
-spec clear_token() -> ok.
clear_token() ->
    case get('$kprof_token') of
        undefined -> ?OFF_OR(_Slots, _OneIn, ok, kprof_token:clear());
        _ -> kprof_token:clear()
    end.

%% @doc Runs `apply(M, F, A)' as one request and returns its result. Its outcome is `ok', or
%% `error', `exit' or `throw' when it raised one, which is raised again with its own stack. Inside a
%% request it is a plain apply.
-spec do_apply(module(), atom(), [term()]) -> term().
do_apply(M, F, A) ->
    ?OFF_OR(Slots, OneIn, apply(M, F, A), kprof_token:run(Slots, OneIn, undefined, {M, F}, A)).

%% @doc The label of the request that this process works for, to be carried by hand to where no
%% message goes (through ETS, say) and taken up there with {@link set_current_label/1}.
-spec get_current_label() -> label() | undefined.
get_current_label() ->
    kprof_label:current().

%% @doc Takes up a request by its label; `undefined' makes the process forget the one it has,
%% without ending it. A label of an earlier trace is ignored, and a process with a foreign seq_trace
%% token keeps that.
%%
%% This is how to carry on after what takes the token away:
%% ```
%% Label = kprof:get_current_label(),
%% Result = rpc:call(Node, M, F, A),
%% ok = kprof:set_current_label(Label)
%% '''
%% and after what was worked out, or given back, for another request: the worker of a pool that this
%% one had to wait for comes with the token of the request that had it before.
%% ```
%% Label = kprof:get_current_label(),
%% poolboy:transaction(Pool, fun(Worker) ->
%%     ok = kprof:set_current_label(Label),
%%     gen_server:call(Worker, Job)
%% end)
%% '''
%% The request does not count as damaged then: nothing but the call itself ran without the token. A
%% request that was begun in this process is still ended by its {@link clear_token/0} or {@link
%% do_apply/3}.
-spec set_current_label(label() | undefined) -> ok.
set_current_label(Label) when Label =:= undefined; is_integer(Label) ->
    kprof_label:set(Label).

%% @doc Runs `Fun' for the request of `Label', as {@link get_current_label/0} gave it where the work
%% was ordered; afterwards the process has the token that it had before. With `undefined' it runs
%% for no request. For servers and workers that take their work from an ETS table, a queue or a
%% port, and for a gen_server that answers later than it is asked:
%% ```
%% handle_call(get, From, S) ->
%%     {noreply, queue(From, kprof:get_current_label(), S)};
%% handle_info({ready, Value}, S0) ->
%%     {{From, Label}, S} = next(S0),
%%     kprof:with_token(Label, fun() -> gen_server:reply(From, Value) end),
%% '''
-spec with_token(label() | undefined, fun(() -> Result)) -> Result.
with_token(Label, Fun) when is_function(Fun, 0) ->
    kprof_label:with(Label, Fun).

%% @doc A function like `Fun' that runs for the request which this process works for now, in
%% whatever process it is called:
%% ```
%% true = ets:insert(jobs, {Id, kprof:wrap(fun() -> render(Page) end)})
%% '''
%% Without a request it is `Fun' itself. It may be called as often as you like, also when the
%% request is over (what it does counts as asynchronous then), and when kprof has left the node.
%% `Fun' has up to four arguments; of more it is given back as it is.
-spec wrap(Fun) -> Fun when Fun :: fun().
wrap(Fun) when is_function(Fun) ->
    ?OFF_OR(_Slots, _OneIn, Fun, kprof_label:wrap(Fun)).

%% @doc Begins a web server's request; `Header' looks up one of its headers, named in lower case.
%% This is for helpers such as {@link kprof_helper}, which know when a request ends whatever
%% happens. `Facts' is called when the request is traced, and tells what it is called unless its end
%% does. Gives `off' when there is nothing to end.
-spec begin_request(fun((binary()) -> text() | undefined), fun(() -> kprof_web:facts())) ->
    label() | 0 | off.
begin_request(Header, Facts) when is_function(Header, 1), is_function(Facts, 0) ->
    ?OFF_OR(Slots, OneIn, off, kprof_web:begin_request(Slots, OneIn, Header, Facts)).

%% @doc The response of such a request is on its way, and its process goes on with it until {@link
%% end_request/2}, or until it ends.
-spec send_request(label() | 0, fun(() -> kprof_web:facts())) -> ok.
send_request(Request, Facts) when is_integer(Request), is_function(Facts, 0) ->
    kprof_web:send_request(Request, Facts).

%% @doc Ends such a request, in a process that has its token. `Facts' is called when the request is
%% traced.
-spec end_request(label() | 0, fun(() -> kprof_web:facts())) -> ok.
end_request(Request, Facts) when is_integer(Request), is_function(Facts, 0) ->
    kprof_web:end_request(Request, Facts).

%% @doc What the profile of such a request is called, which a header has had traced fully
%% (`flame_header'); `undefined' of all others. It is for the answer's header.
-spec flame_name(label() | 0 | off) -> binary() | undefined.
flame_name(Request) ->
    kprof_flame_header:name_of(Request).

%% @doc Runs one request of the misultin web server: wrap the loop that misultin is given,
%% `{loop, fun(Req) -> kprof:misultin_req_loop(Req, fun handle/1) end}'. {@link kprof_misultin}
%% tells what it assumes.
-spec misultin_req_loop(Req, fun((Req) -> Result)) -> Result.
misultin_req_loop(Req, LoopFun) when is_function(LoopFun, 1) ->
    ?OFF_OR(_Slots, _OneIn, LoopFun(Req), kprof_misultin:req_loop(Req, LoopFun)).
