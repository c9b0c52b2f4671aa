%% SPDX-License-Identifier: Apache-2.0
%% @doc Makes one readable line of each reason that the shim's functions return. Every reason is
%% made here or nowhere: a new one gets its clause, so that no user ever reads a bare term.
-module(kprof_error).

-export([format/1, network/1, secret/1]).

%% @doc One line of text, without a full stop or newline.
-spec format(term()) -> string().
format(Reason) ->
    lists:flatten(text(Reason)).

text(not_started) ->
    "kprof is not running: call kprof:start() first";
text(already_tracing) ->
    "kprof is tracing already: call kprof:stop_trace() first";
text(not_tracing) ->
    "nothing is being traced";
text(options_not_a_list) ->
    "the options must be a list of {Option, Value}";
text({bad_option, {Name, _}}) when is_atom(Name) -> io_lib:format("unknown option ~tp", [Name]);
text({bad_option, Option}) ->
    io_lib:format("unknown option ~0tp", [Option]);
text({duplicate_option, Name}) ->
    io_lib:format("the option ~tp is given twice", [Name]);
text({missing_option, tier_config}) ->
    "the option tier_config is missing, or an entry; {tier_config, []} is for sampling stacks only";
text({missing_option, Name}) ->
    io_lib:format("the option ~tp is missing", [Name]);
text({bad_value, Name, Value, Wanted}) ->
    io_lib:format("the option ~tp wants ~ts, not ~0tP", [Name, Wanted, Value, 20]);
text({unsafe_option, Name, Otp, Erts, {Issue, What}}) ->
    io_lib:format(
        "the option ~tp could kill this node, of OTP ~ts (erts ~ts), and is refused: ~ts "
        "(github.com/erlang/otp/issues/~b)",
        [Name, Otp, Erts, What, Issue]
    );
text({bad_tier, Tier}) ->
    io_lib:format(
        "a tier is {Name, {Module, Function, Arity}} or {Name, {Module, Function, Arity}, "
        "#{returns => none}}, not ~0tP",
        [Tier, 20]
    );
text({bad_tier_option, Name, Key}) ->
    io_lib:format("the tier ~ts has no option ~0tP: the only one is returns", [Name, Key, 10]);
text({bad_tier_value, Name, Key, Value, Wanted}) ->
    io_lib:format("the tier ~ts: ~ts wants ~ts, not ~0tP", [Name, Key, Wanted, Value, 10]);
text({bad_tier_name, Name, Why}) ->
    io_lib:format("the tier name ~0tP ~ts", [Name, 20, Why]);
text({duplicate_tier, Name}) ->
    io_lib:format("two tiers are named ~ts", [Name]);
text({duplicate_function, MFA, A, B}) ->
    io_lib:format("~ts is given to two tiers, ~ts and ~ts", [mfa(MFA), A, B]);
text({too_many_tiers, N, Max}) ->
    io_lib:format("~b tiers are more than the ~b that one trace may have", [N, Max]);
text({duplicate_entry, MFA}) ->
    io_lib:format("the entry ~ts is given twice", [mfa(MFA)]);
text({wildcard_tier, Name, MFA}) ->
    io_lib:format("the tier ~ts is a wildcard, ~ts: name one function", [Name, mfa(MFA)]);
text({own_module, Name, MFA}) ->
    io_lib:format("the tier ~ts is kprof's own function ~ts", [Name, mfa(MFA)]);
text({unknown_function, Name, MFA}) ->
    case mfa(MFA) of
        % an entry that no tier names is known by its function
        Name -> io_lib:format("there is no function ~ts", [Name]);
        Text -> io_lib:format("the tier ~ts: there is no function ~ts", [Name, Text])
    end;
text({nowhere, Option, {M, _, _} = MFA, {module, Near}}) ->
    io_lib:format(
        "~ts~ts: there is no module ~ts~ts; with --wait it is traced once it is loaded",
        [Option, mfa(MFA), kprof_mfa:atom(M), near(Near)]
    );
text({nowhere, Option, MFA, {function, Near}}) ->
    io_lib:format(
        "~ts~ts: there is no such function~ts; with --wait it is traced once it is there", [
            Option, mfa(MFA), near(Near)
        ]
    );
text({names_nothing, MFA, N, Traced}) ->
    io_lib:format(
        "--identity ~ts:~b: that is no entry and no tier, and only calls of these can name a "
        "request; want one of ~ts",
        [mfa(MFA), N, lists:join(", ", [mfa(Of) || Of <- Traced])]
    );
text(bad_flame_header) ->
    "the option flame_header is {flame_header, Name, Secret}, with 16 to 255 letters, digits and "
    "-._~+/= as the secret, or any; make one with: openssl rand -hex 16";
text({bad_flame, Options}) ->
    io_lib:format("a full trace's options are a map, not ~0tP", [Options, 20]);
text(flame_runs) ->
    "a full trace that this node asked for runs already: try again when it is over";
text({bad_sample, Options}) ->
    io_lib:format("the options of stack sampling are a map, not ~0tP", [Options, 20]);
text(sample_runs) ->
    "stack sampling that this node asked for runs already: try again when it is over";
text({no_connection, State}) ->
    io_lib:format("there is no connection to the collector at the moment: kprof is ~ts", [State]);
text(no_answer) ->
    "the collector did not answer: it may be of an older release";
text({not_now, State}) ->
    io_lib:format("nothing is traced at the moment: kprof is ~ts", [State]);
text({no_profile, Why}) ->
    ["there is no profile: ", Why];
text({already_traced, Name, MFA}) ->
    io_lib:format("the tier ~ts: ~ts is being traced by somebody else already", [Name, mfa(MFA)]);
text({foreign_tracer, Tracer}) ->
    io_lib:format(
        "new processes are being traced by somebody else already (~0tp), and before OTP 27 a "
        "process has one tracer",
        [Tracer]
    );
text({stats_file, Path, Why}) ->
    io_lib:format("cannot write the stats_dumper file ~ts: ~ts", [Path, posix(Why)]);
text({collector, Host, Port, Why}) ->
    io_lib:format("the collector at ~ts:~b ~ts", [Host, Port, collector(Why)]);
text(secret_twice) ->
    "the options secret and secret_file exclude each other";
text({bad_secret, undefined, Why}) ->
    ["the option secret: ", secret(Why)];
text({bad_secret, Path, Why}) ->
    io_lib:format("the secret file ~0tp: ~ts", [Path, secret(Why)]);
text({bad_tls, Why}) ->
    ["the option tls: ", Why];
text({no_application, App, For}) ->
    io_lib:format(
        "~ts wants OTP's application ~ts, which is not on this node: add it to its release", [
            For, App
        ]
    );
text(no_runtime_tools) ->
    "the trace port's driver, trace_ip_drv of the application runtime_tools, is not on this node";
text({trace_driver, Why}) ->
    io_lib:format("the trace port's driver cannot be loaded: ~ts", [erl_ddll:format_error(Why)]);
text({trace_port, Why}) ->
    io_lib:format("the trace port cannot be opened: ~0tp", [Why]);
text({trace_port_taken, N}) ->
    io_lib:format("somebody else connected to the trace port ~b times before kprof could", [N]);
text({bad_trigger, Trigger}) ->
    io_lib:format(
        "a trigger is {Of, {above, N}}, Of being run_queue, message_queue_len, memory or "
        "reductions, or {tier_p99, Tier, {above_ms, N}}, maybe with a map of options behind, not "
        "~0tP",
        [Trigger, 20]
    );
text({bad_trigger, Name, {bad_option, {Key, _}}}) ->
    io_lib:format("the trigger ~ts has no option ~0tP", [Name, Key, 10]);
text({bad_trigger, Name, {bad_value, Key, Value, Wanted}}) ->
    io_lib:format("the trigger ~ts: ~0tP wants ~ts, not ~0tP", [Name, Key, 10, Wanted, Value, 10]);
text({duplicate_trigger, Name}) ->
    io_lib:format("two triggers are named ~ts: give one another name", [Name]);
text({too_many_triggers, N, Max}) ->
    io_lib:format("~b triggers are more than the ~b that one trace may have", [N, Max]);
text({no_trigger, Name}) ->
    io_lib:format("there is no trigger ~ts", [Name]);
text({no_tier, Name}) ->
    io_lib:format("no tier is named ~ts", [Name]);
text({config, Line, Why}) ->
    io_lib:format("line ~ts: ~ts", [line(Line), Why]);
text(Other) ->
    io_lib:format("~0tP", [Other, 30]).

near([]) -> "";
near(Names) -> [", but ", lists:join(", ", Names)].

collector(timeout) ->
    "did not answer in time";
collector({bye, Text}) ->
    ["refused: ", Text];
collector(closed) ->
    "closed the connection";
collector(no_tls) ->
    "closed the connection instead of speaking TLS: was it started with --tls-cert?";
collector(unproven) ->
    "does not know the secret: nothing was sent to it";
collector({tls_alert, {_, Text}} = Alert) ->
    {Whose, _} = alert(Text),
    [
        case string:find(Whose, "received") of
            nomatch -> "cannot be trusted: ";
            _ -> "does not trust this node: "
        end,
        network(Alert)
    ];
collector({protocol, emsgsize}) ->
    "does not speak kprof's protocol, or wants TLS (the option tls)";
collector({protocol, Why}) ->
    io_lib:format("does not speak kprof's protocol (~0tP)", [Why, 10]);
collector(Why) ->
    ["cannot be reached: ", network(Why)].

%% @doc What gen_tcp and ssl return, as text.
-spec network(term()) -> iodata().
network({tls_alert, {unknown_ca, _}}) ->
    "TLS: the certificate is of an unknown authority";
network({tls_alert, {certificate_expired, _}}) ->
    "TLS: the certificate has expired";
network({tls_alert, {certificate_required, _}}) ->
    "TLS: no certificate was given";
network({tls_alert, {_, Text}}) ->
    {_, What} = alert(Text),
    case string:find(What, "hostname_check_failed") of
        nomatch -> ["TLS: ", lists:join(" ", string:lexemes(What, " \n"))];
        _ -> "TLS: the certificate is for another name"
    end;
network(Why) ->
    posix(Why).

%% What ssl says of an alert: whether it was received or generated, and what is wrong, which from
%% OTP 27 on may hold any word.
alert(Text) ->
    case string:split(Text, "ALERT:") of
        [Whose, What] -> {Whose, What};
        [What] -> {"", What}
    end.

%% @doc What is wrong with a secret.
-spec secret(term()) -> iodata().
secret(empty) ->
    "it is empty; make one with: openssl rand -hex 32";
secret(short) ->
    "it has fewer than 16 bytes; make one with: openssl rand -hex 32";
secret(long) ->
    "it has more than 1024 bytes; make one with: openssl rand -hex 32";
secret(no_binary) ->
    "it is no binary";
secret(no_file) ->
    "it is not a file";
secret({mode, Mode}) ->
    io_lib:format("mode ~3.8.0b opens the secret to everybody on that machine; chmod 600 it", [
        Mode
    ]);
secret(Why) ->
    file:format_error(Why).

posix(Why) when is_atom(Why) ->
    case inet:format_error(Why) of
        "unknown POSIX error" ++ _ -> atom_to_list(Why);
        Text -> Text
    end;
posix(Why) ->
    io_lib:format("~0tP", [Why, 10]).

line({Line, _Column}) -> integer_to_list(Line);
line(Line) when is_integer(Line) -> integer_to_list(Line);
line(_) -> "?".

mfa({M, F, _} = MFA) when is_atom(M), is_atom(F) -> kprof_mfa:text(MFA);
mfa({M, F, A}) -> io_lib:format("~0tp:~0tp/~0tp", [M, F, A]).
