%% SPDX-License-Identifier: Apache-2.0
%% @doc Checks what start_trace is given and brings it into one form, before anything is traced.
%% Reads the configuration text of a kprof node into the same options.
-module(kprof_options).

-export([check/1, parse/1]).

-export_type([options/0, tier/0]).

-define(MAX_TIERS, 256).
-define(MAX_NAME, 255).
-define(MAX_WEIGHTS, 1000).
-define(FORCED_PER_SECOND, 5).
-define(FORCE_WANTS, "a header's name, or {Name, PerSecond} with PerSecond from 1 to 1000").

-type tier() :: #{name := binary(), mfa := mfa(), returns := none | whole, entry := boolean()}.
-type options() :: #{
    tiers := [tier()],
    identity_f := kprof:identity_fun() | undefined,
    print_calls := boolean(),
    stats_dumper := kprof:stats_dumper(),
    collector := {string(), inet:ip_address() | inet:hostname(), inet:port_number()},
    secret := kprof_auth:secret() | undefined,
    tls := kprof_tls:options() | undefined,
    sample := kprof_sampling:asked(),
    sampling := undefined | kprof_sample_options:wanted(),
    weights := #{binary() => number()},
    force_header := undefined | {binary(), pos_integer()},
    flame_header := undefined | kprof_flame_header:header(),
    slow_us := non_neg_integer() | undefined,
    slow_callback := kprof:slow_call_callback() | undefined,
    flags := [garbage_collection | running],
    triggers := [kprof_trigger:spec()],
    tracer := kprof_arming:wanted(),
    leader := pid()
}.
%% force_header: its name in lower case, and how many requests a second it may force. collector: the
%% host as text, as gen_tcp takes it, and the port. leader: where print_calls prints. flags: what
%% processes are traced for besides while they work for a request. sampling: of stacks, for ever.

%% @doc Checks options. Loads the tiers' modules if they are not loaded yet; changes nothing else. A
%% module that cannot be loaded is no error: it may come later.
-spec check(term()) -> {ok, options()} | {error, term()}.
check(Options) ->
    try
        is_list(Options) andalso length(Options) >= 0 orelse throw(options_not_a_list),
        Map = lists:foldl(fun collect/2, #{}, Options),
        is_map_key(tier_config, Map) orelse is_map_key(entry, Map) orelse
            throw({missing_option, tier_config}),
        Checked = maps:map(fun value/2, maps:remove(tier_config, maps:merge(defaults(), Map))),
        Tiers = tiers(maps:get(tier_config, Map, []), maps:get(entry, Checked)),
        lists:foreach(fun(Tier) -> traceable(Tier, maps:get(wait, Checked)) end, Tiers),
        samplable(Tiers, maps:get(sample, Checked)),
        #{
            stats_dumper := Dumper,
            sample := Sample,
            sample_weights := Weights,
            slow_call_threshold := SlowUs,
            slow_call_callback := SlowCallback,
            trace_gc := Gc,
            trace_scheduling := Scheduling
        } = Checked,
        Flags = [
            safe(Flag, Option)
         || {Option, Flag, true} <- [
                {trace_gc, garbage_collection, Gc}, {trace_scheduling, running, Scheduling}
            ]
        ],
        writable(Dumper),
        {ok, #{
            tiers => Tiers,
            identity_f => maps:get(identity_f, Checked),
            print_calls => maps:get(print_calls, Checked),
            stats_dumper => Dumper,
            collector => maps:get(collector, Checked),
            secret => secret(maps:get(secret, Checked), maps:get(secret_file, Checked)),
            tls => tls(maps:get(tls, Checked)),
            sample => Sample,
            sampling => maps:get(sampling, Checked),
            weights => Weights,
            force_header => maps:get(force_header, Checked),
            flame_header => maps:get(flame_header, Checked),
            slow_us => SlowUs,
            slow_callback => SlowCallback,
            flags => Flags,
            triggers => triggers(maps:get(triggers, Checked), Tiers),
            tracer => maps:get(tracer, Checked),
            leader => group_leader()
        }}
    catch
        throw:Reason -> {error, Reason};
        error:badarg -> {error, options_not_a_list}
    end.

defaults() ->
    #{
        entry => [],
        identity_f => undefined,
        print_calls => false,
        stats_dumper => false,
        collector => {"127.0.0.1", 4711},
        secret => undefined,
        secret_file => undefined,
        tls => false,
        sample => {one_in, 1},
        sampling => false,
        sample_weights => #{},
        force_header => undefined,
        flame_header => undefined,
        slow_call_threshold => undefined,
        slow_call_callback => undefined,
        trace_gc => false,
        trace_scheduling => false,
        triggers => [],
        tracer => port,
        wait => false
    }.

collect({flame_header, Name, Secret}, Map) ->
    collect({flame_header, {Name, Secret, #{}}}, Map);
collect({flame_header, Name, Secret, Options}, Map) ->
    collect({flame_header, {Name, Secret, Options}}, Map);
collect(Other, _) when is_tuple(Other), element(1, Other) =:= flame_header, tuple_size(Other) > 2 ->
    throw(bad_flame_header);
collect({Name, Value}, Map) when is_atom(Name) ->
    Name =:= tier_config orelse is_map_key(Name, defaults()) orelse
        throw({bad_option, {Name, Value}}),
    is_map_key(Name, Map) andalso throw({duplicate_option, Name}),
    Map#{Name => Value};
collect(Other, _) ->
    throw({bad_option, Other}).

%% --- values ---

value(entry, V) ->
    entries(V);
value(identity_f, undefined) ->
    undefined;
value(identity_f, F) when is_function(F, 1) -> F;
value(identity_f, V) ->
    bad(identity_f, V, "a fun of one argument, {M, F, Args}");
value(print_calls, B) when is_boolean(B) -> B;
value(print_calls, V) ->
    bad(print_calls, V, "true or false");
value(stats_dumper, false) ->
    false;
value(stats_dumper, {file, Path} = D) when
    is_list(Path), Path =/= []; is_binary(Path), Path =/= <<>>
->
    is_binary(Path) orelse io_lib:char_list(Path) orelse bad(stats_dumper, D, "a path of text"),
    D;
value(stats_dumper, {'fun', F} = D) when is_function(F, 1) -> D;
value(stats_dumper, {pid, P} = D) when is_pid(P) -> D;
value(stats_dumper, V) ->
    bad(stats_dumper, V, "false, {file, Path}, {'fun', fun/1} or {pid, Pid}");
value(collector, {Host, Port} = V) when is_integer(Port), Port > 0, Port =< 65535 ->
    collector(Host, Port, V);
value(collector, V) ->
    bad(collector, V, "{Host, Port}");
% checked later, and never shown
value(secret, Secret) ->
    Secret;
value(secret_file, Path) ->
    Path;
value(tls, false) ->
    false;
value(tls, Map) when is_map(Map) -> Map;
value(tls, _) ->
    throw({bad_tls, "it is false or a map"});
value(sample, V) ->
    kprof_sampling:is_asked(V) orelse
        bad(sample, V, "{one_in, N} with N from 1 on, or {per_second, R} with R from 1 to 1000000"),
    V;
value(sampling, false) ->
    undefined;
value(sampling, Options) ->
    case kprof_sample_options:standing(Options) of
        {ok, Wanted} -> Wanted;
        {error, Reason} -> throw(Reason)
    end;
value(sample_weights, Weights) when is_map(Weights), map_size(Weights) =< ?MAX_WEIGHTS ->
    maps:fold(fun(Identity, W, Acc) -> Acc#{weighted(Identity, W) => W} end, #{}, Weights);
value(sample_weights, V) ->
    bad(sample_weights, V, "a map from identities to numbers, 1000 at most");
value(force_header, undefined) ->
    undefined;
value(force_header, {Name, N}) when is_integer(N), N >= 1, N =< 1000 ->
    {header(force_header, Name, ?FORCE_WANTS), N};
value(force_header, Name) ->
    {header(force_header, Name, ?FORCE_WANTS), ?FORCED_PER_SECOND};
value(flame_header, undefined) ->
    undefined;
value(flame_header, {Name, Secret, Options}) when is_map(Options) ->
    {
        header(flame_header, Name, "{flame_header, Name, Secret} with the name of a header"),
        header_secret(Secret),
        flame(Options)
    };
% it may hold the secret
value(flame_header, _) ->
    throw(bad_flame_header);
value(slow_call_threshold, undefined) ->
    undefined;
value(slow_call_threshold, N) when is_integer(N), N >= 0, N < 1 bsl 62 -> N;
value(slow_call_threshold, V) ->
    bad(slow_call_threshold, V, "microseconds, an integer from 0 on");
value(slow_call_callback, undefined) ->
    undefined;
value(slow_call_callback, F) when is_function(F, 2) -> F;
value(slow_call_callback, V) ->
    bad(slow_call_callback, V, "a fun of two arguments, Spans and Identity");
value(triggers, V) ->
    kprof_trigger_options:check(V);
value(tracer, Tracer) when Tracer =:= port; Tracer =:= native; Tracer =:= auto -> Tracer;
value(tracer, V) ->
    bad(tracer, V, "port, native or auto");
value(Name, B) when
    is_boolean(B), Name =:= trace_gc orelse Name =:= trace_scheduling orelse Name =:= wait
->
    B;
value(Name, V) ->
    bad(Name, V, "true or false").

%% The node comes before what is traced of it.
safe(Flag, Option) ->
    case kprof_vm:unsafe(Flag) of
        no ->
            Flag;
        Danger ->
            throw(
                {unsafe_option, Option, erlang:system_info(otp_release),
                    erlang:system_info(version), Danger}
            )
    end.

weighted(Identity, W) when is_number(W), W >= 0, W =< 1.0e6 ->
    case kprof_identify:text(Identity) of
        nil -> bad(sample_weights, Identity, "identities of text, or {text, text}");
        Text -> Text
    end;
weighted(_, W) ->
    bad(sample_weights, W, "numbers from 0 to 1000000").

%% Match specifications draw by the count of calls alone.
samplable(Tiers, {per_second, _} = Sample) ->
    lists:any(fun(#{entry := Entry}) -> Entry end, Tiers) andalso
        bad(sample, Sample, "{one_in, N} where there are entry functions"),
    ok;
samplable(_, _) ->
    ok.

triggers(Triggers, Tiers) ->
    Names = [Name || #{name := Name} <- Tiers],
    _ = [
        throw({no_tier, Tier})
     || #{of_what := {tier_p99, Tier}} <- Triggers, not lists:member(Tier, Names)
    ],
    Triggers.

bad(Name, Value, Wanted) ->
    throw({bad_value, Name, Value, Wanted}).

header(Option, Name, Wanted) ->
    Text =
        try
            string:lowercase(to_text(Name))
        catch
            error:_ -> <<>>
        end,
    is_binary(Text) andalso re:run(Text, "^[a-z0-9-]{1,64}$", [dollar_endonly]) =/= nomatch orelse
        bad(Option, Name, Wanted),
    Text.

%% It is never shown.
header_secret(any) ->
    any;
header_secret(Given) ->
    try
        Text = to_text(Given),
        match = re:run(Text, "^[A-Za-z0-9._~+/=-]{16,255}$", [dollar_endonly, {capture, none}]),
        fun() -> Text end
    catch
        _:_ -> throw(bad_flame_header)
    end.

flame(Options) ->
    case kprof_flame:check(Options) of
        _ when is_map_key(requests, Options); is_map_key(identity, Options) ->
            bad(flame_header, Options, "options other than requests and identity");
        {ok, Wanted} ->
            Wanted;
        {error, Reason} ->
            throw(Reason)
    end.

collector(Host, Port, V) when is_tuple(Host) ->
    case inet:ntoa(Host) of
        {error, _} -> bad(collector, V, "{Host, Port}");
        Text -> {Text, Host, Port}
    end;
collector(Host, Port, V) when is_binary(Host) ->
    collector(binary_to_list(Host), Port, V);
collector(Host, Port, V) when is_atom(Host) ->
    collector(atom_to_list(Host), Port, V);
collector(Host, Port, V) ->
    Host =/= [] andalso io_lib:latin1_char_list(Host) orelse bad(collector, V, "{Host, Port}"),
    case inet:parse_address(Host) of
        {ok, Address} -> {Host, Address, Port};
        {error, einval} -> {Host, Host, Port}
    end.

secret(undefined, undefined) ->
    undefined;
secret(Bytes, Path) ->
    Bytes =:= undefined orelse Path =:= undefined orelse throw(secret_twice),
    kprof_auth:available() orelse throw({no_application, crypto, "the secret"}),
    case
        if
            Path =:= undefined -> kprof_auth:secret(Bytes);
            true -> kprof_auth:read_file(Path)
        end
    of
        {ok, Secret} -> Secret;
        {error, Why} -> throw({bad_secret, Path, Why})
    end.

tls(false) -> undefined;
tls(Map) -> kprof_tls:options(Map).

writable({file, Path}) ->
    case file:open(Path, [append, raw]) of
        {ok, Fd} ->
            _ = file:close(Fd),
            ok;
        {error, Why} ->
            throw({stats_file, Path, Why})
    end;
writable(_) ->
    ok.

%% --- tiers ---

tiers(Config, Entries) when is_list(Config), length(Config) + length(Entries) =< ?MAX_TIERS ->
    Named = [tier(T) || T <- Config],
    Unnamed = [
        Entry
     || {MFA, _} = Entry <- Entries, not lists:any(fun(#{mfa := Of}) -> Of =:= MFA end, Named)
    ],
    Tiers = [
        entry(Tier, Entries)
     || Tier <- Named ++ [tier({kprof_mfa:text(MFA), MFA, More}) || {MFA, More} <- Unnamed]
    ],
    _ = lists:foldl(fun unique/2, #{}, Tiers),
    Tiers;
tiers(Config, Entries) when is_list(Config) ->
    throw({too_many_tiers, length(Config) + length(Entries), ?MAX_TIERS});
tiers(V, _) ->
    bad(tier_config, V, "a list of {Name, {Module, Function, Arity}}").

tier({Name, {_, _, _} = MFA}) ->
    tier({Name, MFA, #{}});
tier({Name, {M, F, A} = MFA, More}) when is_map(More) ->
    Text = name(Name),
    lists:any(fun(X) -> X =:= '_' end, [M, F, A]) andalso throw({wildcard_tier, Text, MFA}),
    is_atom(M) andalso is_atom(F) andalso is_integer(A) andalso A >= 0 andalso A =< 255 orelse
        throw({bad_tier, {Name, MFA}}),
    maps:foreach(fun(Key, Value) -> tier_option(Text, Key, Value) end, More),
    #{name => Text, mfa => MFA, returns => maps:get(returns, More, whole), entry => false};
tier(Other) ->
    throw({bad_tier, Other}).

%% An entry is a tier as well. What either says of its returns holds.
entry(#{mfa := MFA, returns := Returns} = Tier, Entries) ->
    case lists:keyfind(MFA, 1, Entries) of
        {_, More} -> Tier#{entry := true, returns := maps:get(returns, More, Returns)};
        false -> Tier
    end.

entries(Entries) when is_list(Entries) ->
    All = [entry(E) || E <- Entries],
    MFAs = [MFA || {MFA, _} <- All],
    MFAs -- (MFAs -- lists:usort(MFAs)) =:= MFAs orelse
        throw({duplicate_entry, hd(MFAs -- lists:usort(MFAs))}),
    All;
entries(Entry) when is_tuple(Entry) ->
    entries([Entry]);
entries(V) ->
    bad(
        entry,
        V,
        "{Module, Function, Arity}, {{Module, Function, Arity}, #{returns => none}}, or a list of "
        "such"
    ).

entry({M, F, A} = MFA) when
    is_atom(M), is_atom(F), is_integer(A), A >= 0, A =< 255, M =/= '_', F =/= '_'
->
    {MFA, #{}};
entry({{M, F, A} = MFA, More}) when is_map(More), is_atom(M), is_atom(F), is_integer(A) ->
    maps:foreach(fun(Key, Value) -> tier_option(kprof_mfa:text(MFA), Key, Value) end, More),
    {_, _} = entry(MFA),
    {MFA, More};
entry(V) ->
    bad(
        entry,
        V,
        "{Module, Function, Arity} of one function, or {{Module, Function, Arity}, #{returns => "
        "none}}, or a list of such"
    ).

tier_option(_, returns, Value) when Value =:= none; Value =:= whole -> ok;
tier_option(Name, returns, Value) ->
    throw({bad_tier_value, Name, returns, Value, "none or whole"});
tier_option(Name, Key, _) ->
    throw({bad_tier_option, Name, Key}).

name(Name) ->
    Text =
        try
            to_text(Name)
        catch
            error:_ -> throw({bad_tier_name, Name, "is no text"})
        end,
    is_binary(Text) andalso Text =/= <<>> orelse throw({bad_tier_name, Name, "is no text"}),
    byte_size(Text) =< ?MAX_NAME orelse throw({bad_tier_name, Name, "is longer than 255 bytes"}),
    Text =/= <<"_total">> orelse
        throw({bad_tier_name, Name, "is taken: it means the whole request"}),
    Text =/= <<"_other">> orelse
        throw({bad_tier_name, Name, "is taken: it means what is over the limits"}),
    Text.

to_text(A) when is_atom(A), A =/= '_' -> kprof_mfa:atom(A);
to_text(T) when is_list(T); is_binary(T) -> unicode:characters_to_binary(T).

unique(#{name := Name, mfa := MFA}, Seen) ->
    is_map_key({name, Name}, Seen) andalso throw({duplicate_tier, Name}),
    case Seen of
        #{MFA := Other} -> throw({duplicate_function, MFA, Other, Name});
        _ -> Seen#{{name, Name} => true, MFA => Name}
    end.

traceable(#{name := Name, mfa := {M, _, _} = MFA}, Wait) ->
    lists:member(M, kprof_app:modules()) andalso throw({own_module, Name, MFA}),
    Loaded = code:ensure_loaded(M),
    case {Loaded, kprof_vm:function(MFA)} of
        {_, free} -> ok;
        % it may be loaded later
        {{error, _}, absent} -> ok;
        {_, absent} when Wait -> ok;
        {_, absent} -> throw({unknown_function, Name, MFA});
        {_, taken} -> throw({already_traced, Name, MFA})
    end.

%% --- the configuration text of a kprof node ---

%% @doc Evaluates a configuration text: options as one list, or one after the other, each ended by a
%% full stop. Funs in it are local to this node.
-spec parse(binary()) -> {ok, [term()]} | {error, term()}.
parse(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars) ->
            try
                {ok, forms(Chars, 1, [])}
            catch
                throw:Reason -> {error, Reason}
            end;
        _ ->
            {error, {config, 1, "this is no UTF-8 text"}}
    end.

forms(Chars, Line, Acc) ->
    case erl_scan:tokens([], Chars, Line) of
        {done, {ok, Tokens, Next}, Rest} ->
            forms(Rest, Next, Acc ++ options(evaluate(Tokens)));
        {done, {eof, _}, _} ->
            Acc;
        {done, {error, {At, Module, What}, _}, _} ->
            throw({config, At, Module:format_error(What)});
        {more, Continuation} ->
            case erl_scan:tokens(Continuation, eof, Line) of
                {done, {eof, _}, _} ->
                    Acc;
                {done, {ok, Tokens, _}, _} ->
                    Acc ++ options(evaluate(Tokens));
                {done, {error, {At, Module, What}, _}, _} ->
                    throw({config, At, Module:format_error(What)})
            end
    end.

evaluate(Tokens) ->
    case erl_parse:parse_exprs(Tokens) of
        {ok, Exprs} ->
            try erl_eval:exprs(Exprs, erl_eval:new_bindings()) of
                {value, Value, _} -> Value
            catch
                _:Reason ->
                    throw(
                        {config, erl_scan:line(hd(Tokens)),
                            io_lib:format("cannot be evaluated: ~0tP", [Reason, 20])}
                    )
            end;
        {error, {At, Module, What}} ->
            case lists:flatten(Module:format_error(What)) of
                "syntax error before: " ++ Rest when Rest =:= ""; Rest =:= "'.'" ->
                    throw(
                        {config, At, "it ends too early: is an end, a bracket or a quote missing?"}
                    );
                Text ->
                    throw({config, At, Text})
            end
    end.

options(Options) when is_list(Options) -> Options;
options(Option) -> [Option].
