%% SPDX-License-Identifier: Apache-2.0
%% @doc Functions and atoms as people write them: Erlang's way, `shop_http:handle/2', or for what is
%% Elixir's Elixir's, `MyApp.Repo.all/2'. include/codec/mfa.h is the collector's side.
-module(kprof_mfa).

-export([text/1, atom/1, parse/1]).

%% @doc A function as its language writes it.
-spec text({module(), atom(), term()}) -> binary().
text({M, F, A}) ->
    Format =
        case atom(M) =:= atom_to_binary(M, utf8) of
            true -> io_lib:format("~tw:~tw/~0tp", [M, F, A]);
            false -> io_lib:format("~ts.~ts/~0tp", [atom(M), elixir_function(atom_to_list(F)), A])
        end,
    unicode:characters_to_binary(Format).

elixir_function(F) ->
    case
        re:run(F, "^([a-z_][A-Za-z0-9_]*[?!]?|[-+*/<>=!&|^~.%\\\\]+)$", [unicode, {capture, none}])
    of
        match ->
            F;
        nomatch ->
            [
                $",
                [
                    case lists:member(C, "\"\\") of
                        true -> [$\\, C];
                        false -> C
                    end
                 || C <- F
                ],
                $"
            ]
    end.

%% @doc An atom's name; a module of Elixir's without the prefix that Elixir does not show:
%% `MyApp.Repo'.
-spec atom(atom()) -> binary().
atom(A) ->
    case atom_to_binary(A, utf8) of
        <<"Elixir.", C, _/bits>> = Name when C >= $A, C =< $Z ->
            binary:part(Name, 7, byte_size(Name) - 7);
        Name ->
            Name
    end.

%% @doc A function from its text in either way. Quotes that a shell took away are not missed where
%% no doubt is: `Elixir.MyApp.Repo:all/2'.
-spec parse(string()) -> {ok, mfa()} | error.
parse(Text) ->
    maybe_function(
        re:run(Text, "^(.+)/([0-9]{1,3})$", [unicode, dotall, {capture, all_but_first, list}])
    ).

maybe_function({match, [Name, Digits]}) ->
    Parts =
        case Name of
            [$: | _] ->
                parts(
                    Name,
                    "^:(~s)\\.(~s)$",
                    "\"(?:[^\"\\\\]|\\\\.)+\"|[^\".:]+",
                    "\"(?:[^\"\\\\]|\\\\.)+\"|[^\":]+"
                );
            [C | _] when C >= $A, C =< $Z ->
                parts(
                    Name,
                    "^(~s)\\.(~s)$",
                    "[A-Z][^.:\"]*(?:\\.[A-Z][^.:\"]*)*",
                    "\"(?:[^\"\\\\]|\\\\.)+\"|[^\":A-Z][^\":]*"
                );
            _ ->
                nomatch
        end,
    case Parts of
        {match, [M, F]} when hd(Name) =:= $: -> function(M, F, Digits);
        {match, ["Elixir." ++ _ = M, F]} ->
            function(M, F, Digits);
        {match, [M, F]} ->
            function("Elixir." ++ M, F, Digits);
        nomatch ->
            Quoted = "'(?:[^'\\\\]|\\\\.)+'",
            case parts(Name, "^(~s):(~s)$", Quoted ++ "|[^':/ ]+", Quoted ++ "|[^':/ ]+") of
                {match, [M, F]} -> function(M, F, Digits);
                nomatch -> error
            end
    end;
maybe_function(nomatch) ->
    error.

parts(Name, Format, Module, Function) ->
    re:run(Name, io_lib:format(Format, [Module, Function]), [
        unicode, {capture, all_but_first, list}
    ]).

function(M, F, Digits) ->
    try {list_to_atom(unquoted(M)), list_to_atom(unquoted(F)), list_to_integer(Digits)} of
        {'_', _, _} -> error;
        {_, '_', _} -> error;
        {_, _, A} = MFA when A =< 255 -> {ok, MFA};
        _ -> error
    catch
        % longer than an atom may be
        error:_ -> error
    end.

unquoted([Quote | _] = Text) when Quote =:= $'; Quote =:= $" ->
    re:replace(lists:droplast(tl(Text)), "\\\\(.)", "\\1", [global, unicode, {return, list}]);
unquoted(Text) ->
    Text.
