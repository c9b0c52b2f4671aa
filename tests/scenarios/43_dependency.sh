#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the shim as a dependency, with the lines of shim/README.md, of a project of rebar3 and of one of mix. Both get it out
# of a git repository and nothing from anywhere else, build it, and put it into a release. The release's node traces its requests, with an
# identity function of its own, and the database has every call of them.
# On another release of OTP there is its rebar3, a newer one, but no mix.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ -n "${KPROF_OTP:-}" ] || command -v mix >/dev/null || { echo "skipped: there is no mix"; exit 77; }
# nothing of the user's, nor of a git that runs this test
export HOME=$scratch/home XDG_CONFIG_HOME=$scratch/home XDG_CACHE_HOME=$scratch/home MIX_HOME=$scratch/home/mix
unset "${!GIT_@}"
MIX_REBAR3=$(command -v rebar3)
export MIX_ENV=prod MIX_REBAR3
# who asks a registry nevertheless gets no answer
export http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9

# -- the repository: the files as they are here, which may be no checkout ----------------------------------------------
git init -q -b main "$scratch/kprof"
tree() { git -C "$top" --git-dir="$scratch/kprof/.git" --work-tree="$top" "$@"; }
tree add -A
tree -c user.name=kprof -c user.email=kprof@localhost commit -q -m "the tree as it is"

# documented BEGIN: the line of shim/README.md that begins so, with this repository's address.
documented() {
  local line
  line=$(grep -F "    $1" "$top/shim/README.md") || fail "shim/README.md has no line $1"
  echo "${line/https:\/\/example.org\/kprof.git/file:\/\/$scratch/kprof}"
}

# in_project NAME COMMAND...: runs it in the project's folder.
in_project() {
  local project=$1
  shift
  (cd "$scratch/$project" && timeout 600 "$@") </dev/null >>"$scratch/$project-build.log" 2>&1 || fail "$* in the project of $project"
}

# traces NAME MODULE COMMAND...: COMMAND runs the release's node, NAME@localhost, and MODULE is the application's.
traces() {
  local name=$1 module=$2 requests
  shift 2
  requests=$(ledger requests_complete)
  start "$scratch/$name.log" "$@"
  wait_for 30 "the release's node is up" answers "$name@localhost"
  is "$(target_eval "$name@localhost" "
    {ok, Modules} = application:get_key(kprof, modules),
    {kprof:status(), code:get_mode(), length(Modules), [M || M <- Modules, code:is_loaded(M) =:= false],
     lists:member('Elixir.Kprof.Plug', Modules)}.")" \
     "{idle,embedded,$(find "$top/shim/src" -name '*.erl' | wc -l),[],true}" "$name: every module of the shim is in, and it runs"
  is "$(target_eval "$name@localhost" 'kprof_library:load().')" ok "$name: the native tracer's library is in, too"
  is "$(target_eval "$name@localhost" "$module:trace($collector_port).")" ok "$name: it traces"
  is "$(target_eval "$name@localhost" "
    {module, _} = code:load_abs(\"$SCENARIO_EBIN/scenario_trace\"),
    {match_spec, [{_, _, Body} | _]} = scenario_trace:info({$module, fetch, 1}, match_spec),
    string:find(io_lib:format(\"~p\", [Body]), \"ask\").")" nomatch "$name: the identity function is compiled, arguments stay at home"
  is "$(target_eval "$name@localhost" "[$module:visit(20, home), $module:visit(10, shop), $module:visit(5, broken)].")" "[ok,ok,ok]" \
    "$name: 35 requests"
  wait_for 15 "all requests are there" ledger_reaches requests_complete $((requests + 35))
  is "$(target_eval "$name@localhost" 'kprof:stop_trace().')" ok "$name: stop_trace"
  is "$(sql "SELECT tier, identity, sum(calls), sum(errors) FROM tier_stats WHERE resolution_s = 10 AND node LIKE '$name@%'
             GROUP BY tier, identity ORDER BY tier, identity")" "_total|_total|35|5
_total|broken|5|5
_total|home|20|0
_total|shop|10|0
fetch|_total|65|5
fetch|broken|5|5
fetch|home|40|0
fetch|shop|20|0" "$name: every call of them"
  nothing_lost "$name"
}

rebar3_line=$(documented '{deps, [{kprof,')
mix_line=$(documented '{:kprof,')
start_collector

# -- rebar3 ------------------------------------------------------------------------------------------------------------
mkdir -p "$scratch/rebar3/src"
cat >"$scratch/rebar3/rebar.config" <<END
$rebar3_line
{relx, [{release, {dependent, "1"}, [dependent, runtime_tools]}, {mode, prod}, {include_erts, false}, {debug_info, keep},
        {vm_args, "vm.args"}]}.
END
echo "-sname rebar3_$$@localhost" >"$scratch/rebar3/vm.args"
cat >"$scratch/rebar3/src/dependent.app.src" <<'END'
{application, dependent, [{description, "depends on kprof"}, {vsn, "1"}, {applications, [kernel, stdlib, kprof]}]}.
END
cat >"$scratch/rebar3/src/dependent.erl" <<'END'
-module(dependent).
-export([trace/1, visit/2, page/1, fetch/1]).

trace(Port) ->
    kprof:start_trace([
        {collector, {"127.0.0.1", Port}},
        {tier_config, [{fetch, {?MODULE, fetch, 1}}]},
        {identity_f, fun({_, _, [Key]}) -> Key end}
    ]).

visit(0, _) -> ok;
visit(N, Key) ->
    try kprof:do_apply(?MODULE, page, [Key]) catch error:broken -> ok end,
    visit(N - 1, Key).

page(Key) -> [fetch(Key), fetch(Key)].

fetch(broken) -> error(broken);
fetch(Key) -> {Key, self()}.
END
in_project rebar3 rebar3 release
in_project rebar3 rebar3 release # what is fetched already is found in another way
has "$scratch/rebar3/rebar.lock" "\\{ref,\"$(git -C "$scratch/kprof" rev-parse main)\"\\}" "rebar3 locks the dependency"
traces "rebar3_$$" dependent "$scratch/rebar3/_build/default/rel/dependent/bin/dependent" foreground

# -- mix ---------------------------------------------------------------------------------------------------------------
if [ -z "${KPROF_OTP:-}" ]; then
  mkdir -p "$scratch/mix/lib"
  cat >"$scratch/mix/mix.exs" <<END
defmodule Dependent.MixProject do
  use Mix.Project

  def project do
    [
      app: :dependent,
      version: "1.0.0",
      deps: [
    $mix_line
      ],
      releases: [dependent: [include_erts: false, strip_beams: false]]
    ]
  end

  def application, do: [extra_applications: [:runtime_tools]]
end
END
  cat >"$scratch/mix/lib/dependent.ex" <<'END'
defmodule Dependent do
  def trace(port) do
    :kprof.start_trace(
      collector: {"127.0.0.1", port},
      tier_config: [fetch: {Dependent, :fetch, 1}],
      identity_f: fn {_, _, [key]} -> key end
    )
  end

  def visit(0, _), do: :ok

  def visit(n, key) do
    try do
      :kprof.do_apply(Dependent, :page, [key])
    rescue
      RuntimeError -> :ok
    end

    visit(n - 1, key)
  end

  def page(key), do: [fetch(key), fetch(key)]

  def fetch(:broken), do: raise("broken")
  def fetch(key), do: {key, self()}
end
END
  in_project mix mix deps.get
  in_project mix mix release
  has "$scratch/mix/mix.lock" "\"$(git -C "$scratch/kprof" rev-parse main)\"" "mix locks the dependency"
  traces "mix_$$" "'Elixir.Dependent'" env RELEASE_NODE="mix_$$@localhost" RELEASE_COOKIE="$(cat "$scratch/cookie")" \
    "$scratch/mix/_build/prod/rel/dependent/bin/dependent" start
fi

stop_collector
counted_once
intact
