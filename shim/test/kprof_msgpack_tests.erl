%% SPDX-License-Identifier: Apache-2.0
-module(kprof_msgpack_tests).
-include("patient.hrl").

%% Value and bytes as the msgpack specification has them: the shortest form of each.
known() ->
    [
        {0, "00"},
        {127, "7f"},
        {128, "cc80"},
        {255, "ccff"},
        {256, "cd0100"},
        {65535, "cdffff"},
        {65536, "ce00010000"},
        {16#ffffffff, "ceffffffff"},
        {16#100000000, "cf0000000100000000"},
        {16#ffffffffffffffff, "cfffffffffffffffff"},
        {-1, "ff"},
        {-32, "e0"},
        {-33, "d0df"},
        {-128, "d080"},
        {-129, "d1ff7f"},
        {-32768, "d18000"},
        {-32769, "d2ffff7fff"},
        {-2147483648, "d280000000"},
        {-2147483649, "d3ffffffff7fffffff"},
        {-16#8000000000000000, "d38000000000000000"},
        {nil, "c0"},
        {false, "c2"},
        {true, "c3"},
        {1.5, "cb3ff8000000000000"},
        {<<>>, "a0"},
        {<<"abc">>, "a3616263"},
        {{bin, <<1, 2>>}, "c4020102"},
        {[], "90"},
        {[1, [2]], "920191" "02"},
        {#{}, "80"},
        {#{<<"a">> => 1}, "81a16101"}
    ].

hex(Text) -> <<<<(list_to_integer([A, B], 16))>> || <<A, B>> <= list_to_binary(Text)>>.

known_test_() ->
    [
        {Hex, [
            ?_assertEqual(hex(Hex), iolist_to_binary(kprof_msgpack:encode(V))),
            ?_assertEqual({ok, V}, kprof_msgpack:decode(hex(Hex)))
        ]}
     || {V, Hex} <- known()
    ].

%% Forms that only others write.
foreign_test_() ->
    [
        ?_assertEqual({ok, V}, kprof_msgpack:decode(hex(Hex)))
     || {V, Hex} <- [
            {1.5, "ca3fc00000"},
            {nil, "ca7f800000"},
            {nil, "cb7ff8000000000000"},
            {1, "d30000000000000001"},
            {<<"a">>, "d90161"},
            {<<"a">>, "da000161"},
            {<<"a">>, "db0000000161"},
            {[1], "dc000101"},
            {[1], "dd0000000101"},
            {#{1 => 2}, "de00010102"},
            {#{1 => 2}, "df000000010102"},
            {{bin, <<9>>}, "c5000109"},
            {{bin, <<9>>}, "c60000000109"},
            {{ext, -1, <<1, 2, 3, 4>>}, "d6ff01020304"},
            {{ext, 5, <<1>>}, "c7010501"},
            {{ext, 5, <<1>>}, "d40501"}
        ]
    ].

sizes_test_() ->
    [
        ?_test(begin
            Text = binary:copy(<<"x">>, N),
            ?assertEqual({ok, Text}, roundtrip(Text)),
            ?assertEqual({ok, {bin, Text}}, roundtrip({bin, Text})),
            List = lists:duplicate(N, 0),
            ?assertEqual({ok, List}, roundtrip(List)),
            Map = maps:from_list([{I, I} || I <- lists:seq(1, N)]),
            ?assertEqual({ok, Map}, roundtrip(Map))
        end)
     || N <- [15, 16, 31, 32, 255, 256, 65535, 65536]
    ].

roundtrip(V) -> kprof_msgpack:decode(iolist_to_binary(kprof_msgpack:encode(V))).

errors_test_() ->
    [
        ?_assertEqual({error, truncated}, kprof_msgpack:decode(<<>>)),
        ?_assertEqual({error, trailing}, kprof_msgpack:decode(<<1, 2>>)),
        ?_assertEqual({error, bad_tag}, kprof_msgpack:decode(<<16#c1>>)),
        ?_assertError(badarg, kprof_msgpack:encode(16#10000000000000000)),
        ?_assertError(badarg, kprof_msgpack:encode(-16#8000000000000001)),
        ?_assertError(badarg, kprof_msgpack:encode(self()))
    ].

%% A claim of more elements than there are bytes costs nothing.
claims_test_() ->
    [
        ?_assertEqual({error, truncated}, kprof_msgpack:decode(hex(H)))
     || H <- [
            "dd3d0addff",
            "dfffffffff00",
            "dbffffffff61",
            "c6ffffffff",
            "c9ffffffff0500",
            "ddffffffff"
        ]
    ].

depth_test_() -> {timeout, 300, fun depth_case/0}.
depth_case() ->
    Nested = fun(N) -> <<(binary:copy(<<16#91>>, N))/binary, 16#c0>> end,
    ?assertMatch({ok, _}, kprof_msgpack:decode(Nested(16))),
    ?assertEqual({error, too_deep}, kprof_msgpack:decode(Nested(17))),
    ?assertEqual({error, too_deep}, kprof_msgpack:decode(Nested(1000000))).

%% Every prefix of a message is an error, none is a crash.
prefix_test_() -> {timeout, 300, fun prefix_case/0}.
prefix_case() ->
    Whole = iolist_to_binary(
        kprof_msgpack:encode(#{
            type => hello, n => -70000, f => 0.25, l => [1, nil, #{a => {bin, <<0:64>>}}]
        })
    ),
    [
        ?assertEqual({error, truncated}, kprof_msgpack:decode(binary:part(Whole, 0, N)))
     || N <- lists:seq(0, byte_size(Whole) - 1)
    ],
    ?assertMatch({ok, _}, kprof_msgpack:decode(Whole)).

random_bytes_test_() -> {timeout, 300, fun random_bytes_case/0}.
random_bytes_case() ->
    _ = rand:seed(exsss, {1, 2, 3}),
    [
        case kprof_msgpack:decode(rand:bytes(rand:uniform(40))) of
            {ok, _} -> ok;
            {error, Why} -> ?assert(is_atom(Why))
        end
     || _ <- lists:seq(1, 20000)
    ].

%% Property, when proper is installed: what is encoded decodes to itself.
round_trip_test_() ->
    case code:ensure_loaded(proper) of
        {module, proper} ->
            ?_assert(proper:quickcheck(property(), [{numtests, 300}, quiet]));
        _ ->
            []
    end.

property() ->
    proper:forall(value(), fun(V) -> roundtrip(V) =:= {ok, V} end).

value() ->
    proper_types:sized(fun(Size) -> value(min(Size, 12)) end).

value(0) ->
    scalar();
value(Size) ->
    Less = fun() -> value(Size div 3) end,
    proper_types:oneof([
        scalar(),
        proper_types:resize(6, proper_types:list(proper_types:lazy(Less))),
        map_of(proper_types:lazy(Less))
    ]).

%% Proper 1.2 has no type for maps.
map_of(Value) ->
    proper_types:bind(
        proper_types:list(proper_types:tuple([proper_types:binary(), Value])),
        fun maps:from_list/1,
        false
    ).

scalar() ->
    proper_types:oneof([
        proper_types:integer(-16#8000000000000000, 16#ffffffffffffffff),
        proper_types:integer(),
        proper_types:float(),
        proper_types:boolean(),
        proper_types:exactly(nil),
        proper_types:binary(),
        proper_types:tuple([proper_types:exactly(bin), proper_types:binary()])
    ]).
