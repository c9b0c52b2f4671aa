%% SPDX-License-Identifier: Apache-2.0
%% @doc Clauses of identity functions, as text. {@link kprof_match} compiles each into a match
%% specification, so that no argument leaves the node: patterns and guards only.
-module(kprof_suggest_identity).

-export([function/1]).
-export([route/1, conn/1, handler/1, path/1, elli/1, record/2, head/2, yaws/1, mochiweb/1, tag/2]).

-export_type([clause/0]).

-type clause() :: iolist().

%% @doc The whole function, without `fun' where there is no clause.
-spec function([clause()]) -> binary() | none.
function([]) ->
    none;
function(Clauses) ->
    unicode:characters_to_binary([
        "fun", lists:join("; ", Clauses ++ ["(_) -> undefined"]), " end"
    ]).

%% @doc Phoenix's router: method and route.
-spec route(mfa()) -> clause().
route(MFA) ->
    clause(MFA, #{1 => "C", 2 => "R"}, "", "{map_get(method, C), map_get(route, R)}").

%% @doc A Plug.Conn: `GET /users/*', as long as nobody knows the route.
-spec conn(mfa()) -> clause().
conn(MFA) ->
    words(MFA, [], "map_get(method, X)", "map_get(path_info, X)").

%% @doc cowboy's handler: method and module.
-spec handler(mfa()) -> clause().
handler(MFA) ->
    clause(MFA, #{1 => "R", 2 => "E"}, "", "{map_get(method, R), map_get(handler, E)}").

%% @doc A request of cowboy's: method and path.
-spec path(mfa()) -> clause().
path(MFA) ->
    clause(MFA, #{1 => "R"}, "", "{map_get(method, R), map_get(path, R)}").

%% @doc A request of elli's, a record, whose path has moved in it: `GET /users/*'.
-spec elli(mfa()) -> clause().
elli(MFA) ->
    lists:join("; ", [
        words(MFA, io_lib:format("is_list(element(~b, X)), ", [N]), "element(2, X)", [
            io_lib:format("element(~b, X)", [N])
        ])
     || N <- [3, 6]
    ]).

%% Method and path, which is a list of words: its first one.
words(MFA, Guard, Method, Path) ->
    lists:join("; ", [
        clause(MFA, #{1 => "X"}, [Guard, When], ["{", Method, ", {", Words, "}}"])
     || {When, Words} <- [
            {[Path, " =:= []"], ""},
            {["tl(", Path, ") =:= []"], ["hd(", Path, ")"]},
            {["is_list(", Path, ")"], ["hd(", Path, "), '*'"]}
        ]
    ]).

%% @doc An argument that is a record, or an atom: its name.
-spec record(mfa(), pos_integer()) -> clause().
record(MFA, N) ->
    lists:join("; ", [
        clause(MFA, #{N => "X"}, "is_atom(X)", "X"),
        clause(MFA, #{N => "X"}, "is_atom(element(1, X))", "element(1, X)")
    ]).

%% @doc An argument that is a list: its first element.
-spec head(mfa(), pos_integer()) -> clause().
head(MFA, N) ->
    clause(MFA, #{N => "[X | _]"}, "", "X").

%% @doc Arguments that tag what is called: an atom, or a tuple that begins with one.
-spec tag(mfa(), [pos_integer()]) -> clause().
tag(MFA, Ns) ->
    lists:join("; ", [
        clause(MFA, #{N => "X"}, Guard, Body)
     || {Guard, Body} <- [{"is_atom(X)", "X"}, {"is_atom(element(1, X))", "element(1, X)"}],
        N <- Ns
    ]).

%% @doc yaws: method and path.
-spec yaws(mfa()) -> clause().
yaws(MFA) ->
    clause(MFA, #{1 => "M", 4 => "{http_request, _, {abs_path, P}, _}"}, "", "{M, P}").

%% @doc mochiweb: its request is a module with a list of parameters.
-spec mochiweb(mfa()) -> clause().
mochiweb(MFA) ->
    clause(MFA, #{2 => "{mochiweb_request, [_, _, M, P | _]}"}, "", "{M, P}").

clause({M, F, A}, Arguments, Guard, Body) ->
    Patterns = [maps:get(N, Arguments, "_") || N <- lists:seq(1, A)],
    [
        io_lib:format("({~tw, ~tw, [", [M, F]),
        lists:join(", ", Patterns),
        "]})",
        case Guard of
            "" -> "";
            _ -> [" when ", Guard]
        end,
        " -> ",
        Body
    ].
