%% SPDX-License-Identifier: Apache-2.0
%% @doc The names on this node that are nearest to one that is not there, for who has mistyped it.
%%
%% Near are names that differ in a third of their characters at most, upper and lower case being the
%% same, and modules whose name ends in the one that was given: `Repo' means `MyApp.Repo'. Where
%% none is, those are whose last part is the same: `MyApp.Repo' may mean `Shop.Repo'. All that is
%% loaded or can be is looked at; nothing is loaded.
-module(kprof_nearest).

-export([missing/1, modules/2, functions/2]).

-define(SHOWN, 3).

%% @doc What of a function is not on this node, its module or itself, and the names that are near to
%% that.
-spec missing(mfa()) -> none | {module | function, [binary()]}.
missing({M, F, A} = MFA) ->
    case {code:ensure_loaded(M), kprof_vm:function(MFA)} of
        {{error, _}, absent} ->
            {module, [kprof_mfa:atom(Near) || Near <- modules(M, known())]};
        {_, absent} ->
            {function, [
                kprof_mfa:text({M, G, B})
             || {G, B} <- functions({F, A}, M:module_info(functions))
            ]};
        _ ->
            none
    end.

%% Atoms are made of those few that are shown only.
known() ->
    lists:usort(
        [atom_to_list(M) || {M, _} <- code:all_loaded()] ++
            [Name || {Name, _, _} <- code:all_available()]
    ).

%% @doc The modules of these names that are near to one.
-spec modules(module(), [string()]) -> [module()].
modules(M, Names) ->
    Wanted = plain(atom_to_list(M)),
    Far = far(Wanted),
    [
        list_to_atom(Name)
     || Name <- nearest(
            [{distance_of_module(Wanted, plain(Name), Far), Name} || Name <- Names], Far, 0
        )
    ].

distance_of_module(Wanted, Name, Far) ->
    Last = string:find(Wanted, ".", trailing),
    case {lists:suffix([$. | Wanted], Name), distance(Wanted, Name, Far)} of
        {true, _} ->
            1;
        {false, Distance} when Distance > Far, Last =/= nomatch ->
            case lists:suffix(Last, Name) of
                true -> Far;
                false -> Distance
            end;
        {false, Distance} ->
            Distance
    end.

%% @doc The functions that are near to one: those of its name first, then those that are like it.
-spec functions({atom(), arity()}, [{atom(), arity()}]) -> [{atom(), arity()}].
functions({F, A}, Functions) ->
    Wanted = plain(atom_to_list(F)),
    Far = far(Wanted),
    nearest(
        [
            {2 * distance(Wanted, plain(atom_to_list(G)), Far) + abs(sign(A - B)), GA}
         || {G, B} = GA <- Functions, hd(atom_to_list(G)) =/= $-
        ],
        2 * Far + 1,
        1
    ).

sign(0) -> 0;
sign(_) -> 1.

%% The nearest ones, and those that are no more than Slack further away.
nearest(Candidates, Far, Slack) ->
    case lists:sort([C || {Distance, _} = C <- Candidates, Distance =< Far]) of
        [] ->
            [];
        [{Least, _} | _] = Near ->
            [Name || {Distance, Name} <- lists:sublist(Near, ?SHOWN), Distance =< Least + Slack]
    end.

plain("Elixir." ++ Name) -> string:lowercase(Name);
plain(Name) -> string:lowercase(Name).

far(Name) ->
    max(1, length(Name) div 3).

%% How many characters have to be put in, taken out or changed; more than Far is not counted to the
%% end.
distance(A, B, Far) when abs(length(A) - length(B)) > Far ->
    Far + 1;
distance(A, B, Far) ->
    rows(A, B, lists:seq(0, length(B)), 1, Far).

rows([], _, Row, _, _) ->
    lists:last(Row);
rows([C | As], Bs, [Diagonal | Above] = Row, I, Far) ->
    case lists:min(Row) > Far of
        true -> Far + 1;
        false -> rows(As, Bs, [I | row(C, Bs, Diagonal, Above, I)], I + 1, Far)
    end.

row(_, [], _, [], _) ->
    [];
row(C, [B | Bs], Diagonal, [Up | Above], Left) ->
    Cell =
        if
            C =:= B -> Diagonal;
            true -> 1 + min(Diagonal, min(Up, Left))
        end,
    [Cell | row(C, Bs, Up, Above, Cell)].
