%% SPDX-License-Identifier: Apache-2.0
%% @doc What `kprof suggest' and `--preset' of `kprof attach' ask a node that they are in: what to
%% trace there. The answer is options of `kprof attach', each with its reason, and the same as a
%% configuration file.
%%
%% The node comes first: what looks at it has a heap of bounded size and a time, and leaves nothing.
-module(kprof_suggest).

-export([look/1, presets/1, options/1, answer/1]).

-export_type([answer/0]).

%% All three together are below the guard's patience with who brought the shim, 10 s.
-define(FACTS_MS, 2000).
-define(LONGEST_MS, 4000).
% of choosing processes, twice, and of what is slow
-define(SLACK_MS, 3000).
-define(WORDS, 8 * 1024 * 1024).

-type answer() ::
    {suggested, [{Option :: binary(), Value :: binary(), Reason :: binary()}], Config :: binary(),
        Notes :: [binary()]}
    | {error, kprof_attach:status(), binary()}.

%% @doc Looks at the node, at its stacks for so many milliseconds.
-spec look(non_neg_integer()) -> answer().
look(Ms0) ->
    Ms = min(Ms0, ?LONGEST_MS),
    case within(?FACTS_MS, fun() -> kprof_suggest_facts:gather(kprof_suggest_rules:wanted()) end) of
        {ok, Facts} ->
            {Looked, Note} = stacks(Ms),
            #{notes := Notes} = S = kprof_suggest_rules:suggest(Facts#{looked => Looked}),
            answer(S#{notes => Notes ++ Note});
        {error, Why} ->
            {error, other, <<"cannot look at it: ", Why/binary>>}
    end.

stacks(0) ->
    {[], []};
stacks(Ms) ->
    case within(Ms + ?SLACK_MS, fun() -> kprof_suggest_stacks:look(Ms) end) of
        {ok, Looked} -> {Looked, []};
        {error, Why} -> {[], [["stacks were not looked at: ", Why]]}
    end.

%% @doc What presets stand for there, their texts as the command line has them.
-spec presets([binary()]) -> answer().
presets(Texts) ->
    case suggested(Texts) of
        {ok, Suggestion} -> answer(Suggestion);
        Error -> Error
    end.

%% @doc The same as options of `start_trace'.
-spec options([binary()]) -> {ok, [term()]} | {error, kprof_attach:status(), binary()}.
options([]) ->
    {ok, []};
options(Texts) ->
    case presets(Texts) of
        {suggested, _, Config, _} -> kprof_options:parse(Config);
        Error -> Error
    end.

suggested(Texts) ->
    case lists:partition(fun(P) -> is_tuple(P) end, [preset(Text) || Text <- Texts]) of
        {Presets, []} ->
            %% a module that nobody has used yet is loaded by now
            case
                within(?FACTS_MS, fun() ->
                    kprof_suggest_facts:gather(kprof_suggest_rules:wanted())
                end)
            of
                {ok, Facts} -> of_presets(kprof_suggest_rules:presets(Presets, Facts));
                {error, Why} -> {error, other, <<"cannot look at it: ", Why/binary>>}
            end;
        {_, [Text | _]} ->
            {error, config, <<"--preset ", Text/binary, ": there is no such module">>}
    end.

%% The text itself where its module is not there.
preset(Text) ->
    case binary:split(Text, <<"=">>) of
        [Name] ->
            {known(Name), undefined};
        [Name, Module] ->
            %% as Elixir or as Erlang writes it
            case [M || Try <- [<<"Elixir.", Module/binary>>, Module], M <- there(Try)] of
                [M | _] -> {known(Name), M};
                [] -> Text
            end
    end.

known(Name) ->
    try
        binary_to_existing_atom(Name)
    catch
        error:_ -> undefined
    end.

%% The operator's text: it may name a module that is not loaded yet.
there(Name) when byte_size(Name) =< 255 ->
    M = binary_to_atom(Name),
    [M || code:ensure_loaded(M) =:= {module, M}];
there(_) ->
    [].

of_presets({ok, Suggestion}) -> {ok, Suggestion};
of_presets({error, Why}) -> {error, config, text(["--preset: ", Why])}.

%% A process of its own does it, which may use so much time and memory.
within(Ms, Do) ->
    {Pid, Ref} = spawn_opt(fun() -> exit({?MODULE, Do()}) end, [
        monitor, {max_heap_size, #{size => ?WORDS, kill => true, error_logger => false}}
    ]),
    receive
        {'DOWN', Ref, process, Pid, {?MODULE, Value}} -> {ok, Value};
        {'DOWN', Ref, process, Pid, killed} -> {error, <<"that takes too much memory">>};
        {'DOWN', Ref, process, Pid, Why} -> {error, text(io_lib:format("~0tP", [Why, 20]))}
    after Ms ->
        exit(Pid, kill),
        receive
            {'DOWN', Ref, process, Pid, _} -> ok
        end,
        {error, <<"it takes too long">>}
    end.

%% @doc A suggestion as the tool reads it.
-spec answer(kprof_suggest_rules:suggestion()) -> answer().
answer(#{entries := Entries, tiers := Tiers, identity := Clauses, why := Why, notes := Notes}) ->
    Identity = kprof_suggest_identity:function(Clauses),
    Named = text(lists:join("; ", Why)),
    {suggested,
        [
            {<<"entry">>, blind(kprof_mfa:text(MFA), Returns), text(Reason)}
         || {MFA, Returns, Reason} <- Entries
        ] ++
            [
                {<<"tier">>, blind(<<Name/binary, $=, (kprof_mfa:text(MFA))/binary>>, Returns),
                    text(Reason)}
             || {Name, MFA, Returns, Reason} <- Tiers
            ] ++ [{<<"identity">>, Identity, Named} || Identity =/= none],
        config(Entries, Tiers, Identity, Named), [text(Note) || Note <- Notes]}.

blind(Text, whole) -> Text;
blind(Text, none) -> <<Text/binary, ",returns=none">>.

text(Chars) ->
    unicode:characters_to_binary(Chars).

%% --- the configuration file ---

config(Entries, Tiers, Identity, Why) ->
    text([
        option(<<"entry">>, [
            {entry(MFA, Returns), Reason} || {MFA, Returns, Reason} <- Entries
        ]),
        option(<<"tier_config">>, [
            {tier(Name, MFA, Returns), Reason} || {Name, MFA, Returns, Reason} <- Tiers
        ]),
        [["%% ", Why, "\n{identity_f, ", Identity, "}.\n"] || Identity =/= none]
    ]).

option(_, []) ->
    [];
option(Name, Elements) ->
    ["{", Name, ", [\n", elements(Elements), "]}.\n"].

elements([{Term, Reason}]) -> ["    %% ", Reason, "\n    ", Term, "\n"];
elements([{Term, Reason} | More]) -> ["    %% ", Reason, "\n    ", Term, ",\n", elements(More)].

entry(MFA, whole) -> io_lib:format("~tw", [MFA]);
entry(MFA, none) -> io_lib:format("{~tw, #{returns => none}}", [MFA]).

tier(Name, MFA, Returns) ->
    Text = unicode:characters_to_list(Name),
    case Returns of
        whole -> io_lib:format("{<<~tp/utf8>>, ~tw}", [Text, MFA]);
        none -> io_lib:format("{<<~tp/utf8>>, ~tw, #{returns => none}}", [Text, MFA])
    end.
