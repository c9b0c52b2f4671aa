%% SPDX-License-Identifier: Apache-2.0
%% @doc Compiles an identity function into the match specifications of the tiers, so that arguments
%% never leave the node.
%%
%% That is possible when each clause that can match a tier's call has only patterns of atoms,
%% numbers, strings, lists and tuples, guards that match specifications know, and a body that is a
%% literal, a variable, a call of a guard's function such as map_get, or a pair of these.
%% Clauses keep their order, one guard alternative each, so the first that matches decides, as in
%% the fun; a clause with the body `undefined' says nothing but still ends the search. Everything
%% else is left to the fun itself: `ask'.
%%
%% Also made here are the patterns of the functions that spawn.
-module(kprof_match).

-export([prepare/1, rows/2, spec/2, spawns/0, full/0, stale/1]).
-export([done/1, all/1, first/1]).

-export_type([prepared/0, kind/0, row/0, how/0]).

-type prepared() ::
    none | opaque | {clauses, [erl_parse:abstract_clause()], erl_eval:binding_struct() | []}.
-type kind() :: none | spec | ask.
-type row() :: {Head :: '_' | [term()], Guards :: [term()], Identity :: term()}.
%% Arguments and guards of a match specification, and the expression of the identity, `ask' when it
%% must be asked for.

-type how() :: #{
    returns := none | whole,
    flags := [garbage_collection | running],
    deaths => boolean(),
    stale => [kprof_slots:label()]
}.
%% returns: whether returns are sent with their values, or told by the caller's name alone (process
%% flag return_to). flags: what processes are traced for besides while they hold a token. deaths:
%% trace the deaths of the processes that call it, as a kill tells nothing else on this release.
%% stale: labels of requests that are over: who calls under one loses the token, and is not traced.

-define(GUARDS, [
    {is_atom, 1},
    {is_float, 1},
    {is_integer, 1},
    {is_list, 1},
    {is_number, 1},
    {is_pid, 1},
    {is_port, 1},
    {is_reference, 1},
    {is_tuple, 1},
    {is_map, 1},
    {is_binary, 1},
    {is_function, 1},
    {abs, 1},
    {element, 2},
    {hd, 1},
    {tl, 1},
    {length, 1},
    {size, 1},
    {map_size, 1},
    {bit_size, 1},
    {map_get, 2},
    {is_map_key, 2},
    {round, 1},
    {trunc, 1},
    {node, 1}
]).
-define(OPERATORS, [
    'and',
    'or',
    'xor',
    'not',
    'andalso',
    'orelse',
    '>',
    '>=',
    '<',
    '=<',
    '==',
    '=:=',
    '/=',
    '=/=',
    '+',
    '-',
    '*',
    'div',
    'rem',
    'band',
    'bor',
    'bxor',
    'bnot',
    'bsl',
    'bsr'
]).

%% @doc Finds the clauses of a fun: in its environment when it was made by a shell or from text, in
%% its module's debug information when it was compiled and is the only such fun in its function.
-spec prepare(kprof:identity_fun() | undefined) -> prepared().
prepare(undefined) ->
    none;
prepare(Fun) ->
    try
        case erl_eval:fun_data(Fun) of
            {fun_data, Bindings, Clauses} -> {clauses, Clauses, Bindings};
            false -> compiled(Fun);
            _ -> opaque
        end
    catch
        _:_ -> opaque
    end.

compiled(Fun) ->
    {type, local} = erlang:fun_info(Fun, type),
    {env, []} = erlang:fun_info(Fun, env),
    {module, Module} = erlang:fun_info(Fun, module),
    {name, Name} = erlang:fun_info(Fun, name),
    {match, [F, A]} = re:run(atom_to_list(Name), "^-(.+)/([0-9]+)-fun-[0-9]+-$", [
        {capture, all_but_first, list}, unicode
    ]),
    {Module, Beam, _} = code:get_object_code(Module),
    %% the file may be newer than what runs
    {ok, {Module, Md5}} = beam_lib:md5(Beam),
    Md5 = Module:module_info(md5),
    {ok, {Module, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    [Body] = [
        Cs
     || {function, _, G, B, Cs} <- Forms, atom_to_list(G) =:= F, B =:= list_to_integer(A)
    ],
    [Clauses] = funs(Body),
    {clauses, Clauses, []}.

%% All funs of one argument below a form, nested ones too.
funs({'fun', _, {clauses, [{clause, _, [_], _, _} | _] = Clauses}}) ->
    [Clauses | funs(Clauses)];
funs(T) when is_tuple(T) ->
    funs(tuple_to_list(T));
funs([H | T]) ->
    funs(H) ++ funs(T);
funs(_) ->
    [].

%% @doc The trace patterns of the functions that every local spawn ends in. With the token they tell
%% the child, which shows itself as the sender of its token and not its parent. No arguments travel,
%% and no exception is traced.
-spec spawns() -> [{mfa(), [tuple()]}].
spawns() ->
    Spec = [{'_', [{is_seq_trace}], [{message, {{{get_seq_token}}}}, {return_trace}]}],
    [{{erlang, F, A}, Spec} || {F, A} <- [{spawn, 3}, {spawn_link, 3}, {spawn_opt, 4}]].

%% @doc The trace pattern of all functions in a full trace: only while the process holds a token, a
%% call tells it, and who has called. No return is traced, and no exception.
-spec full() -> [tuple()].
full() ->
    [{'_', [{is_seq_trace}], [{message, {{{get_seq_token}, {caller}, undefined, none}}}]}].

%% @doc How the identity of a function's calls is found. The first row that a call fits counts; the
%% last one takes every call.
-spec rows(prepared(), mfa()) -> {kind(), [row()]}.
rows(none, _) ->
    {none, [everything()]};
rows(opaque, _) ->
    {ask, ask()};
rows({clauses, Clauses, Bindings}, MFA) ->
    try
        Rows = simplify(compile(Clauses, MFA, Bindings)),
        %% the test runs what fits, and from OTP 27 on {trace, _, _} in a test takes the VM down: no
        %% flags
        case erlang:match_spec_test([], spec(Rows, #{returns => whole, flags => []}), trace) of
            {error, _} -> {ask, ask()};
            _ -> {spec, Rows}
        end
    catch
        throw:ask -> {ask, ask()}
    end.

ask() ->
    [{'_', [], ask}].

everything() ->
    {'_', [], undefined}.

%% Rows whose identity is undefined and that only others like them follow say what the catch-all
%% says.
simplify(Rows) ->
    Named = lists:dropwhile(
        fun({_, _, Identity}) -> Identity =:= undefined end, lists:reverse(Rows)
    ),
    case Named of
        [{Head, [], _} | _] ->
            case any(Head) of
                true -> lists:reverse(Named);
                false -> lists:reverse(Named) ++ [everything()]
            end;
        _ ->
            lists:reverse(Named) ++ [everything()]
    end.

%% @doc The trace pattern of a tier.
%%
%% A process that calls without a token is not traced for more than calls any longer: no match spec
%% runs when it loses its token.
-spec spec([row()], how()) -> [tuple()].
spec(Rows, #{returns := Returns, flags := Flags} = How) ->
    % a death sends no return_to
    Arm =
        case Flags ++ [exiting || Returns =:= none orelse maps:get(deaths, How, false)] of
            [] -> [];
            Armed -> [{trace, [], Armed}]
        end,
    Disarm = [{'_', [], [{message, false}, {trace, Flags, []}]} || Flags =/= []],
    Traced = traced(maps:get(stale, How, []), Flags),
    [
        {Head, [{is_seq_trace} | Guards], Traced(message(Returns, Identity) ++ Arm)}
     || {Head, Guards, Identity} <- Rows
    ] ++ Disarm.

%% Guards know nothing of tokens: actions do.
traced([], _) ->
    fun(Actions) -> Actions end;
traced(Stale, Flags) ->
    Over = all(
        [
            stale(Stale),
            {message, {{{get_seq_token}, left_out, over}}},
            done({set_seq_token, sequential_trace_token, []})
        ] ++
            [done({trace, Flags, []}) || Flags =/= []]
    ),
    fun(Actions) -> [first([Over, all(Actions)])] end.

%% @doc Whether the token of the process that calls has one of these labels, as a condition among
%% actions.
-spec stale([kprof_slots:label()]) -> tuple().
stale(Labels) ->
    {is_map_key, {element, 2, {get_seq_token}}, {const, maps:from_list([{L, []} || L <- Labels])}}.

%% @doc An action as a condition that holds.
-spec done(tuple()) -> tuple().
done(Action) -> {'=/=', Action, failed}.

%% @doc All of these conditions, of which the last may be an action; and the first that holds.
-spec all([term()]) -> term().
all([Condition]) -> Condition;
all(Conditions) -> list_to_tuple(['andalso' | Conditions]).
-spec first([term()]) -> term().
first([Condition]) -> Condition;
first(Conditions) -> list_to_tuple(['orelse' | Conditions]).

message(whole, Identity) ->
    [{message, {list_to_tuple([{get_seq_token} | said(Identity)])}}, {exception_trace}];
message(none, Identity) ->
    [{message, {list_to_tuple([{get_seq_token}, {caller} | said(Identity)] ++ [none])}}].

said(ask) -> [ask, '$_'];
said(Identity) -> [Identity].

%% --- clauses ---

compile([], _, _) ->
    [];
compile([{clause, _, [Pattern], Guards, Body} | Clauses], MFA, Bindings) ->
    case call(Pattern, MFA) of
        no ->
            compile(Clauses, MFA, Bindings);
        {Head, Vars} ->
            Env = {Vars, Bindings},
            Identity = body(Body, Env),
            Rows = lists:append([
                rows(Head, [guard(G, Env) || G <- Conjunction], Identity, has_call(Body))
             || Conjunction <-
                    case Guards of
                        [] -> [[]];
                        _ -> Guards
                    end
            ]),
            case Guards =:= [] andalso any(Head) of
                % nothing gets past this clause
                true -> Rows;
                false -> Rows ++ compile(Clauses, MFA, Bindings)
            end
    end.

%% What raises in the fun's body says nothing, and ends the search: in a guard the same expression
%% tells whether it would.
rows(Head, Guards, Identity, false) ->
    [{Head, Guards, Identity}];
rows(Head, Guards, Identity, true) ->
    [{Head, Guards ++ [{'=:=', Identity, Identity}], Identity}, {Head, Guards, undefined}].

has_call({call, _, _, _}) -> true;
has_call(T) when is_tuple(T) -> has_call(tuple_to_list(T));
has_call(L) when is_list(L) -> lists:any(fun has_call/1, L);
has_call(_) -> false.

%% Whether a head takes every call: no value in it, and no variable twice.
any('_') ->
    true;
any(Head) ->
    Vars = [V || V <- Head, V =/= '_'],
    lists:all(fun var/1, Vars) andalso length(lists:usort(Vars)) =:= length(Vars).

var(A) when is_atom(A) ->
    case atom_to_list(A) of
        [$$, C | Cs] ->
            Name = [C | Cs],
            lists:all(fun(D) -> D >= $0 andalso D =< $9 end, Name) orelse
                Name =:= "_" orelse Name =:= "$";
        _ ->
            false
    end;
var(_) ->
    false.

%% The pattern of the fun's argument, {M, F, Args}, for calls of MFA: `no' when it cannot match,
%% else the head for the arguments and the expressions of the variables.
call({var, _, '_'}, _) ->
    {'_', #{}};
call({var, _, Name}, _) ->
    {'_', #{Name => unusable}};
call({tuple, _, [M, F, Args]}, {Module, Function, Arity}) ->
    case constant(M, Module, #{}) of
        no ->
            no;
        Vars1 ->
            case constant(F, Function, Vars1) of
                no -> no;
                Vars2 -> arguments(Args, Arity, Vars2)
            end
    end;
call({tuple, _, _}, _) ->
    no;
call({T, _, _}, _) when T =:= atom; T =:= integer; T =:= string; T =:= char; T =:= float ->
    no;
call(_, _) ->
    throw(ask).

constant({atom, _, A}, A, Vars) -> Vars;
constant({atom, _, _}, _, _) -> no;
constant({var, _, '_'}, _, Vars) -> Vars;
constant({var, _, Name}, A, Vars) when not is_map_key(Name, Vars) -> Vars#{Name => {const, A}};
constant({var, _, Name}, A, Vars) when map_get(Name, Vars) =:= {const, A} -> Vars;
constant({var, _, _}, _, _) -> no;
constant(_, _, _) -> throw(ask).

arguments({var, _, '_'}, _, Vars) ->
    {'_', Vars};
arguments({var, _, Name}, _, Vars) ->
    is_map_key(Name, Vars) andalso throw(ask),
    {'_', Vars#{Name => unusable}};
arguments(Pattern, Arity, Vars) ->
    case elements(Pattern, Arity) of
        no ->
            no;
        {Elements, Tail} ->
            {Head, Vars1} = lists:mapfoldl(fun pattern/2, Vars, Elements),
            Rest = Arity - length(Head),
            {Head ++ lists:duplicate(Rest, '_'), tail(Tail, Vars1)}
    end.

%% A tail variable of the argument list may stand there, but cannot be used.
tail(Name, Vars) when Name =:= '_'; Name =:= nil -> Vars;
tail(Name, Vars) when is_map_key(Name, Vars) -> throw(ask);
tail(Name, Vars) -> Vars#{Name => unusable}.

%% The patterns of an argument list and its tail: nil, or a variable.
elements({nil, _}, 0) ->
    {[], nil};
elements({nil, _}, _) ->
    no;
elements({string, At, Chars}, Arity) when length(Chars) =:= Arity ->
    {[{integer, At, C} || C <- Chars], nil};
elements({string, _, _}, _) ->
    no;
elements({var, _, Name}, _) ->
    {[], Name};
elements({cons, _, _, _}, 0) ->
    no;
elements({cons, _, H, T}, Arity) ->
    case elements(T, Arity - 1) of
        no -> no;
        {Elements, Tail} -> {[H | Elements], Tail}
    end;
elements({T, _, _}, _) when T =:= atom; T =:= integer; T =:= tuple -> no;
elements(_, _) ->
    throw(ask).

%% --- patterns in arguments ---

pattern({var, _, '_'}, Vars) ->
    {'_', Vars};
pattern({var, _, Name}, Vars) ->
    case Vars of
        #{Name := unusable} ->
            throw(ask);
        #{Name := {const, _}} ->
            throw(ask);
        #{Name := Var} ->
            {Var, Vars};
        _ ->
            Next = length([V || V <- maps:values(Vars), is_atom(V), V =/= unusable]) + 1,
            Var = list_to_atom("$" ++ integer_to_list(Next)),
            {Var, Vars#{Name => Var}}
    end;
pattern({cons, _, H, T}, Vars) ->
    {MH, Vars1} = pattern(H, Vars),
    {MT, Vars2} = pattern(T, Vars1),
    {[MH | MT], Vars2};
pattern({tuple, _, Elements}, Vars) ->
    {Ms, Vars1} = lists:mapfoldl(fun pattern/2, Vars, Elements),
    {list_to_tuple(Ms), Vars1};
pattern({op, _, '++', {string, _, Chars}, Tail}, Vars) ->
    {MT, Vars1} = pattern(Tail, Vars),
    {Chars ++ MT, Vars1};
pattern(Literal, Vars) ->
    Value = literal(Literal),
    plain(Value) orelse throw(ask),
    {Value, Vars}.

%% Atoms that a match specification reads as variables have no way into a head.
plain('_') -> false;
plain(A) when is_atom(A) -> not var(A);
plain(_) -> true.

literal({atom, _, A}) -> A;
literal({integer, _, I}) -> I;
literal({char, _, C}) -> C;
% 0.0 and -0.0: releases differ on whether they match
literal({float, _, F}) when F /= 0 -> F;
literal({string, _, S}) -> S;
literal({nil, _}) -> [];
literal({op, _, '-', {integer, _, I}}) -> -I;
literal({op, _, '-', {float, _, F}}) when F /= 0 -> -F;
literal({bin, _, Elements}) -> <<<<(segment(E))/binary>> || E <- Elements>>;
literal(_) -> throw(ask).

segment({bin_element, _, {string, _, S}, default, default}) -> <<<<C>> || C <- S>>;
segment({bin_element, _, {integer, _, I}, default, default}) -> <<I>>;
segment({bin_element, _, {string, _, S}, default, [utf8]}) -> unicode:characters_to_binary(S);
segment(_) -> throw(ask).

%% --- guards and bodies ---

guard({op, _, Op, X}, Env) ->
    lists:member(Op, ?OPERATORS) orelse throw(ask),
    {Op, guard(X, Env)};
guard({op, _, Op, X, Y}, Env) ->
    lists:member(Op, ?OPERATORS) orelse throw(ask),
    {Op, guard(X, Env), guard(Y, Env)};
guard(Expr, Env) ->
    expr(Expr, Env).

bif(F, Args, Env) ->
    lists:member({F, length(Args)}, ?GUARDS) orelse throw(ask),
    list_to_tuple([F | [guard(A, Env) || A <- Args]]).

body([{tuple, _, [A, B]}], Env) -> {{expr(A, Env), expr(B, Env)}};
body([{tuple, _, _}], _) -> throw(ask);
body([Expr], Env) -> expr(Expr, Env);
body(_, _) -> throw(ask).

expr({var, _, Name}, {Vars, Bindings}) ->
    case Vars of
        #{Name := unusable} ->
            throw(ask);
        #{Name := Expr} ->
            Expr;
        _ ->
            case erl_eval:binding(Name, Bindings) of
                {value, Value} -> {const, Value};
                unbound -> throw(ask)
            end
    end;
expr({call, _, {atom, _, F}, Args}, Env) ->
    bif(F, Args, Env);
expr({call, _, {remote, _, {atom, _, erlang}, {atom, _, F}}, Args}, Env) ->
    bif(F, Args, Env);
expr({tuple, _, Elements}, Env) ->
    {list_to_tuple([expr(E, Env) || E <- Elements])};
expr(Literal, _) ->
    case literal(Literal) of
        undefined -> undefined;
        A when is_atom(A) -> {const, A};
        I when is_integer(I) -> I;
        Value -> {const, Value}
    end.
