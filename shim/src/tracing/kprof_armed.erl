%% SPDX-License-Identifier: Apache-2.0
%% @doc What is armed on this node and what is not, function by function, as lines of text for
%% people.
-module(kprof_armed).

-export([lines/2, absent/2, foreign/1, unmarked/2, name/2]).

-export_type([line/0, absence/0]).

-type line() :: {ok | warning, binary()}.
% what is not on this node
-type absence() :: {mfa(), module | function}.
-type tiers() :: [#{name := binary(), mfa := mfa(), _ => _}].

%% @doc One line for each tier, by its state in the VM; and who else traces here. Without a tracer
%% nothing is armed.
-spec lines(
    [#{name := binary(), mfa := mfa(), entry := boolean(), spec := [tuple()], _ => _}],
    undefined | kprof_tracer:tracer()
) -> [line()].
lines(Tiers, undefined) ->
    [line(ok, Tier, "not armed now") || Tier <- Tiers];
lines(Tiers, Tracer) ->
    [
        tier(Tier, kprof_tracer:state(Tracer, {MFA, Spec}))
     || #{mfa := MFA, spec := Spec} = Tier <- Tiers
    ] ++
        others(kprof_tracer:others(Tracer)).

tier(Tier, armed) ->
    line(ok, Tier, "armed");
tier(Tier, off) ->
    line(
        warning,
        Tier,
        "not armed: its trace pattern is set again within some 10 ms, unless it was found never "
        "to return"
    );
tier(Tier, absent) ->
    line(warning, Tier, "not on this node yet; it is armed once it is loaded");
tier(Tier, foreign) ->
    line(warning, Tier, "somebody else's trace pattern is there").

line(Level, #{name := Name, mfa := MFA, entry := Entry}, State) ->
    Kind =
        case Entry of
            true -> "entry";
            false -> "tier"
        end,
    Function =
        case kprof_mfa:text(MFA) of
            % an entry that no tier names is known by its function
            Name -> "";
            Text -> [", ", Text]
        end,
    {Level,
        unicode:characters_to_binary(
            io_lib:format("~ts ~ts~ts: ~ts", [Kind, Name, Function, State])
        )}.

others([]) ->
    [];
others(Names) ->
    Shown = lists:join(", ", [io_lib:format("~0tp", [N]) || N <- Names]),
    [{ok, unicode:characters_to_binary(["others trace here, beside kprof: ", Shown])}].

%% @doc What is told of a tier that is not on this node.
-spec absent(absence(), tiers()) -> string().
absent({{M, _, _} = MFA, module}, Tiers) ->
    lists:flatten(
        io_lib:format(
            "~ts: no module ~ts on this node (yet); it is traced once it is loaded",
            [kind_and_name(MFA, Tiers), kprof_mfa:atom(M)]
        )
    );
absent({MFA, function}, Tiers) ->
    lists:flatten(
        io_lib:format("~ts: there is no function ~ts (any more)", [
            kind_and_name(MFA, Tiers), kprof_mfa:text(MFA)
        ])
    ).

kind_and_name(MFA, Tiers) ->
    case name(MFA, Tiers) =:= kprof_mfa:text(MFA) of
        % one that no tier names
        true -> ["entry ", kprof_mfa:text(MFA)];
        false -> ["tier ", name(MFA, Tiers)]
    end.

%% @doc What is told when somebody else traces that many processes; nothing when nobody does.
-spec foreign(non_neg_integer()) -> [string()].
foreign(0) ->
    [];
foreign(N) ->
    [
        lists:flatten(
            io_lib:format(
                "~b process~ts traced by somebody else, and before OTP 27 a process has one "
                "tracer: "
                "kprof does not see what they do",
                [
                    N,
                    case N of
                        1 -> " is";
                        _ -> "es are"
                    end
                ]
            )
        )
    ].

%% @doc What is told when there were so many calls of tiers and entries, but nothing has begun a
%% request.
-spec unmarked(non_neg_integer(), [#{entry := boolean(), _ => _}]) -> [string()].
unmarked(0, _) ->
    [];
unmarked(Calls, Tiers) ->
    Advice =
        case lists:any(fun(#{entry := Entry}) -> Entry end, Tiers) of
            true -> "no call of an entry was seen: name the function that handles a request";
            false -> "give --entry, or mark requests (README, Your own node)"
        end,
    [
        lists:flatten(
            io_lib:format(
                "armed; ~ts call~ts, but nothing has begun a request: ~ts",
                [
                    grouped(integer_to_list(Calls)),
                    case Calls of
                        1 -> "";
                        _ -> "s"
                    end,
                    Advice
                ]
            )
        )
    ].

%% "4,120"
grouped(Digits) when length(Digits) =< 3 -> Digits;
grouped(Digits) ->
    {Head, Tail} = lists:split(length(Digits) - 3, Digits),
    [grouped(Head), ",", Tail].

%% @doc How people know a function that is traced: by its tier's name, or else by its own.
-spec name(mfa(), tiers()) -> unicode:chardata().
name(MFA, Tiers) ->
    case [Name || #{name := Name, mfa := Of} <- Tiers, Of =:= MFA] of
        [Name] -> Name;
        [] -> kprof_mfa:text(MFA)
    end.
