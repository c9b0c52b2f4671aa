%% SPDX-License-Identifier: Apache-2.0
%% Names that are near to one that is not there.
-module(kprof_nearest_tests).
-include("patient.hrl").

modules_test_() ->
    Names = [
        "shop_http",
        "shop_https",
        "shop_render",
        "lists",
        "Elixir.MyApp.Repo",
        "Elixir.MyApp.Router",
        "Elixir.Repo.Migrator",
        "x"
    ],
    [
        ?_assertEqual(Near, kprof_nearest:modules(M, Names))
     || {M, Near} <- [
            {shop_htp, [shop_http]},
            {'Shop_HTTP', [shop_http]},
            {shop_httpx, [shop_http, shop_https]},
            {list, [lists]},
            {'Elixir.MyApp.Rope', ['Elixir.MyApp.Repo']},
            {'Elixir.Repo', ['Elixir.MyApp.Repo']},
            {'Elixir.Another.Repo', ['Elixir.MyApp.Repo']},
            {'Elixir.Another.Shop', []},
            {myapp_repo, ['Elixir.MyApp.Repo']},
            {nothing_like_it, []},
            {y, [x]},
            {'', [x]}
        ]
    ].

functions_test_() ->
    Functions = [
        {handle_request, 2}, {handle_request, 3}, {handle, 2}, {page, 1}, {'-page/1-fun-0-', 1}
    ],
    [
        ?_assertEqual(Near, kprof_nearest:functions(FA, Functions))
     || {FA, Near} <- [
            {{handle_reqest, 2}, [{handle_request, 2}, {handle_request, 3}]},
            {{handle_request, 1}, [{handle_request, 2}, {handle_request, 3}]},
            {{pages, 1}, [{page, 1}]},
            {{other, 1}, []}
        ]
    ].

%% No more are shown than can be read.
few_test_() -> {timeout, 300, fun few_case/0}.
few_case() ->
    ?assertEqual(
        [{f1, 0}, {f2, 0}, {f3, 0}],
        kprof_nearest:functions({f0, 0}, [{list_to_atom([$f, C]), 0} || C <- "987654321"])
    ).

missing_test_() ->
    [
        ?_assertEqual(none, kprof_nearest:missing({lists, map, 2})),
        ?_assertMatch({function, [<<"lists:map/2">> | _]}, kprof_nearest:missing({lists, map, 3})),
        ?_assertMatch({module, [<<"lists">> | _]}, kprof_nearest:missing({list, map, 2})),
        ?_assertEqual(
            {module, []}, kprof_nearest:missing({'no module has such a name as this one', x, 0})
        ),
        %% on this machine, but not loaded
        ?_assertMatch({module, [<<"compile">> | _]}, kprof_nearest:missing({compil, forms, 2}))
    ].
