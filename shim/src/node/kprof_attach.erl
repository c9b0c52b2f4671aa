%% SPDX-License-Identifier: Apache-2.0
%% @doc What `kprof attach' asks a node that it is in ({@link kprof_visit}). The tool is no Erlang
%% node, so the thinking is done here, in the target, and answers have one form: `{ok, Line,
%% Warnings}' or `{error, Status, Line}', texts for people.
-module(kprof_attach).

-export([start/2, names_collector/1, status/1, describe/1, overridden/2, by_argument/2]).

-export_type([answer/0, status/0]).

-define(PARSE_MS, 5000).
-define(PARSE_WORDS, 16 * 1024 * 1024).

-type answer() :: {ok, binary(), [binary()]} | {error, status(), binary()}.
-type status() :: other | config | load | trace | busy.
%% Why something cannot be done; collector/dist/shim.c knows them, too.

%% @doc Starts the trace. `Config' is the text of a configuration file, or empty; what is `Given' on
%% the command line besides comes before its options. There `{identity, {MFA, N}}' stands for the
%% identity function that gives argument N of a function, and `{identity, Text}' for the one that
%% the text evaluates to. What is named there must be on this node, unless `{wait, true}' says that
%% it may come: the names in a configuration have been used before, those of a command line are
%% typed. `{preset, Texts}' is what {@link kprof_suggest} makes of them; the others go before it.
-spec start(binary(), [{atom(), term()}]) -> answer().
start(Config, Given0) ->
    try
        Preset = preset(proplists:get_value(preset, Given0, [])),
        Given = [added(Option, Preset) || Option <- lists:keydelete(preset, 1, Given0)],
        Options = lists:foldl(
            fun(Option, All) -> [Option | [O || O <- All, not overridden(O, [Option])]] end,
            parsed("the configuration file, ", Config) ++ Preset,
            [given(Option) || Option <- Given]
        ),
        _ =
            proplists:get_value(wait, Given, false) orelse
                lists:foreach(fun is_there/1, named(Given)),
        lists:foreach(
            fun
                ({identity, By}) -> names(By, Options);
                (_) -> ok
            end,
            Given
        ),
        case kprof:start_trace(Options) of
            ok ->
                {ok, unicode:characters_to_binary(describe(Options)), warnings()};
            {error, Reason} ->
                {error, status(Reason), <<(text(Reason))/binary, (advice(Reason))/binary>>}
        end
    catch
        throw:{error, What, Why} ->
            {error, config, <<(unicode:characters_to_binary(What))/binary, (text(Why))/binary>>};
        throw:{preset, Status, Why} ->
            {error, Status, Why}
    end.

preset(Texts) ->
    case kprof_suggest:options(Texts) of
        {ok, Options} -> Options;
        {error, Status, Why} -> throw({preset, Status, Why})
    end.

%% Entries and tiers are added to those of a preset, of which those give way that are given.
added({Key, Given}, Preset) when Key =:= entry; Key =:= tier_config ->
    Same = fun(Of) -> lists:any(fun(One) -> is_same(Key, One, Of) end, Given) end,
    {Key, [Of || Of <- proplists:get_value(Key, Preset, []), not Same(Of)] ++ Given};
added(Option, _) ->
    Option.

is_same(entry, One, Other) -> entered(One) =:= entered(Other);
is_same(tier_config, One, Other) ->
    element(1, One) =:= element(1, Other) orelse element(2, One) =:= element(2, Other).

entered({{_, _, _} = MFA, _}) -> MFA;
entered(MFA) -> MFA.

%% @doc Whether the text of a configuration file says of a collector where it is or how it is
%% entered: the tool looks for none then. Also when it cannot be evaluated: {@link start/2} tells
%% why.
-spec names_collector(binary()) -> boolean().
names_collector(Config) ->
    try
        Options = parsed("the configuration file, ", Config),
        lists:any(
            fun(Key) -> proplists:is_defined(Key, Options) end,
            [collector, secret, secret_file, tls]
        )
    catch
        throw:{error, _, _} -> true
    end.

named(Given) ->
    [
        {["--tier ", element(1, Tier), "="], element(2, Tier)}
     || {tier_config, Tiers} <- Given, Tier <- Tiers
    ] ++ [{"--entry ", entered(Entry)} || {entry, Entries} <- Given, Entry <- Entries].

is_there({Option, MFA}) ->
    case kprof_nearest:missing(MFA) of
        none -> ok;
        Missing -> throw({error, "", {nowhere, Option, MFA, Missing}})
    end.

%% Only calls of what is traced can name a request.
names({{_, _, _} = MFA, N}, Options) ->
    Traced =
        [
            Of
         || {tier_config, Tiers} <- Options,
            is_list(Tiers),
            Tier <- Tiers,
            is_tuple(Tier),
            tuple_size(Tier) >= 2,
            {_, _, _} = Of <- [element(2, Tier)]
        ] ++
            [
                Of
             || {entry, Entries} <- Options,
                Entry <- lists:flatten([Entries]),
                {_, _, _} = Of <- [entered(Entry)]
            ],
    lists:member(MFA, Traced) orelse
        throw({error, "", {names_nothing, MFA, N, lists:usort(Traced)}});
names(_, _) ->
    ok.

warnings() ->
    case kprof_life:warnings() of
        Lines when is_list(Lines) -> [unicode:characters_to_binary(Line) || Line <- Lines];
        {error, _} -> []
    end.

text(Reason) ->
    unicode:characters_to_binary(kprof_error:format(Reason)).

%% What the user of the tool can do about it.
advice({collector, _, _, Why}) when
    Why =:= econnrefused; Why =:= timeout; Why =:= nxdomain; Why =:= ehostunreach
->
    <<", from this node; start kprof-collector there, or say with --collector where it listens">>;
advice({unknown_function, _, MFA}) ->
    case kprof_nearest:missing(MFA) of
        {_, [_ | _] = Near} -> unicode:characters_to_binary([", but ", lists:join(", ", Near)]);
        _ -> <<>>
    end;
advice(_) ->
    <<>>.

given({identity, {{_, _, _} = MFA, N}}) ->
    {identity_f, by_argument(MFA, N)};
given({identity, Text}) when is_binary(Text) ->
    Parse = fun() ->
        case kprof_elixir:is_fn(Text) andalso kprof_elixir:fn(Text) of
            false -> kprof_options:parse(<<Text/binary, "\n.">>);
            {ok, Fn} -> {ok, [Fn]};
            {error, Why} -> {error, {config, 1, Why}}
        end
    end,
    case bounded("--identity, ", Parse) of
        [F] when is_function(F, 1) -> {identity_f, F};
        _ -> throw({error, "--identity, ", {config, 1, "want one fun of one argument"}})
    end;
given(Option) ->
    Option.

%% @doc The identity function that `--identity M:F/A:N' stands for: argument N names the request.
%% What is no name is not sent as it is: a conn holds its application's secrets, and each conn would
%% be an identity of its own. A `Plug.Conn' is called as kprof's own helper calls it as long as no
%% route is known, `GET /users/*'; another struct or a record by its name; what has none, nothing.
%% The match specification that is made of this picks them out on the node.
-spec by_argument(mfa(), pos_integer()) -> kprof:identity_fun().
by_argument({M, F, A}, N) ->
    Arguments = lists:join(", ", [
        case I of
            N -> "X";
            _ -> "_"
        end
     || I <- lists:seq(1, A)
    ]),
    Clause = fun({Guard, Body}) ->
        [
            "({",
            io_lib:format("~tw, ~tw", [M, F]),
            ", [",
            Arguments,
            "]}) when ",
            Guard,
            " -> ",
            Body,
            "; "
        ]
    end,
    Conn = "map_get('__struct__', X) =:= 'Elixir.Plug.Conn'",
    Word = fun(I) ->
        lists:flatten(
            io_lib:format("(is_atom(element(~b, X)) orelse is_binary(element(~b, X)))", [I, I])
        )
    end,
    Text = [
        "fun",
        [
            Clause(C)
         || C <- [
                {
                    "is_atom(X); is_number(X); is_binary(X), bit_size(X) =< 32768; "
                    "is_integer(hd(X)), length(X) =< 4096",
                    "X"
                },
                {[Conn, ", map_get(path_info, X) =:= []"], "{map_get(method, X), {}}"},
                {
                    [Conn, ", tl(map_get(path_info, X)) =:= []"],
                    "{map_get(method, X), {hd(map_get(path_info, X))}}"
                },
                {Conn, "{map_get(method, X), {hd(map_get(path_info, X)), '*'}}"},
                {"is_atom(map_get('__struct__', X))", "map_get('__struct__', X)"},
                {["size(X) =:= 2, is_tuple(X), ", Word(1), ", ", Word(2)], "X"},
                {"is_atom(element(1, X))", "element(1, X)"}
            ]
        ],
        "(_) -> undefined end"
    ],
    [Fun] = parsed("--identity, ", unicode:characters_to_binary([Text, "."])),
    Fun.

%% The text is the operator's, but may be wrong: it gets some memory and some time.
parsed(What, Text) ->
    bounded(What, fun() -> kprof_options:parse(Text) end).

bounded(What, Parse) ->
    {Pid, Ref} = spawn_opt(fun() -> exit({parsed, Parse()}) end, [
        monitor, {max_heap_size, #{size => ?PARSE_WORDS, kill => true, error_logger => false}}
    ]),
    receive
        {'DOWN', Ref, process, Pid, {parsed, {ok, Options}}} ->
            Options;
        {'DOWN', Ref, process, Pid, {parsed, {error, Why}}} ->
            throw({error, What, Why});
        {'DOWN', Ref, process, Pid, Why} ->
            throw(
                {error, What, {config, 1, io_lib:format("cannot be evaluated: ~0tP", [Why, 20])}}
            )
    after ?PARSE_MS ->
        exit(Pid, kill),
        _ = erlang:demonitor(Ref, [flush]),
        throw(
            {error, What,
                {config, 1, io_lib:format("is not evaluated within ~b s", [?PARSE_MS div 1000])}}
        )
    end.

%% @doc Whether an option of a configuration gives way to others.
-spec overridden(term(), [{atom(), term()}]) -> boolean().
overridden({secret_file, _}, Given) ->
    lists:keymember(secret, 1, Given);
overridden(Option, Given) ->
    is_tuple(Option) andalso lists:keymember(element(1, Option), 1, Given).

%% @doc What is traced, in a few words.
-spec describe([term()]) -> iolist().
describe(Options) ->
    Tiers = proplists:get_value(tier_config, Options, []),
    {Host, Port} = proplists:get_value(collector, Options, {"127.0.0.1", 4711}),
    Entries =
        case proplists:get_value(entry, Options, []) of
            L when is_list(L) -> L;
            One -> [One]
        end,
    io_lib:format(
        "~ts~ts tier~ts, collector ~ts:~b",
        [
            case Entries of
                [] -> "";
                [_] -> "1 entry, ";
                _ -> io_lib:format("~b entries, ", [length(Entries)])
            end,
            case {Entries, Tiers} of
                {[], []} -> "no";
                _ -> integer_to_list(length(Tiers))
            end,
            case Tiers of
                [_] -> "";
                _ -> "s"
            end,
            case is_tuple(Host) of
                true -> inet:ntoa(Host);
                false -> Host
            end,
            Port
        ]
    ).

%% @doc What kind of mistake a reason is: whether the configuration can help, or not.
-spec status(term()) -> status().
status({collector, _, _, _}) -> trace;
status({already_traced, _, _}) -> busy;
status({foreign_tracer, _}) -> busy;
status(already_tracing) -> busy;
status(no_runtime_tools) -> trace;
status({no_application, _, _}) -> trace;
status({trace_driver, _}) -> trace;
status({trace_port, _}) -> trace;
status({trace_port_taken, _}) -> trace;
status(_) -> config.
