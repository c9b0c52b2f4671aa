%% @doc What is armed on this node, function by function, as lines of text for people.
-module(kprof_armed).

-export([lines/2]).

-export_type([line/0]).

-type line() :: {ok | warning, binary()}.

%% @doc One line for each tier, by its state in the VM; and who else traces here. Without a tracer nothing is armed.
-spec lines([#{name := binary(), mfa := mfa(), entry := boolean(), spec := [tuple()], _ => _}], undefined | kprof_tracer:tracer()) -> [line()].
lines(Tiers, undefined) ->
    [line(ok, Tier, "not armed now") || Tier <- Tiers];
lines(Tiers, Tracer) ->
    [tier(Tier, kprof_tracer:state(Tracer, {MFA, Spec})) || #{mfa := MFA, spec := Spec} = Tier <- Tiers] ++ others(kprof_tracer:others(Tracer)).

tier(Tier, armed) -> line(ok, Tier, "armed");
tier(Tier, off) -> line(warning, Tier, "not armed; it is set again within half a second, unless it was found never to return");
tier(Tier, absent) -> line(warning, Tier, "not on this node; it is armed once it is");
tier(Tier, foreign) -> line(warning, Tier, "somebody else's trace pattern is there").

line(Level, #{name := Name, mfa := MFA, entry := Entry}, State) ->
    Kind = case Entry of true -> "entry"; false -> "tier" end,
    {Level, unicode:characters_to_binary(io_lib:format("~ts ~ts, ~ts: ~ts", [Kind, Name, kprof_mfa:text(MFA), State]))}.

others([]) -> [];
others(Names) -> [{ok, unicode:characters_to_binary(["others trace here, beside kprof: ", lists:join(", ", [io_lib:format("~0tp", [N]) || N <- Names])])}].
