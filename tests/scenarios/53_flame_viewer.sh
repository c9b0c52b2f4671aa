#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the files of `kprof flame --out x.html` are worked in a real browser, by mouse and by keys, and what they tell is what
# the database has. Names that are HTML stay text. A graph of 100,000 frames zooms fast enough. Screenshots stay in the build folder.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/profile.sh"
# shellcheck source=../page/modules.sh
source "$top/tests/page/modules.sh"
here=$(dirname "${BASH_SOURCE[0]}")

if ! page_modules "$scratch/npm.log"; then
  unjudged+=("the viewer in a browser: npm cannot get what it takes ($(tail -n 1 "$scratch/npm.log"))")
  exit 0
fi
"$modules/node_modules/.bin/tsc" -p "$top/collector/web/page" >"$scratch/tsc" || fail "types: $(cat "$scratch/tsc")"
ok "tsc finds nothing in the page's types"

# -- two profiles of requests whose identity is HTML -------------------------------------------------------------------
hostile='</script><img src=x onerror="window.hacked=1"><b><!--'
profiled_app "viewer_$$" "fun(_) -> <<\"${hostile//\"/\\\"}\">> end"
profile_of 4
profile_of 10
"$kprof" flame --db "$db" --profile 2 --by-identity --out "$scratch/x.html" >/dev/null
"$kprof" flame --db "$db" --profile 2 --before 1 --out "$scratch/compared.html" >/dev/null

# -- the file ----------------------------------------------------------------------------------------------------------
has_not "$scratch/x.html" '(https?:)?//[a-z0-9]+\.[a-z]' "nothing in it is of another host"
beside=$(sed -E 's/(id="data">).*(<\/script>)$/\1\2/' "$scratch/x.html" | wc -c)
holds "$beside" -lt 50000 "bytes of the viewer beside the data"

# -- in the browser ----------------------------------------------------------------------------------------------------
pictures=$KPROF_BUILD/screenshots
mkdir -p "$pictures"
watch
HOME=$scratch/home CHROMIUM=$(command -v chromium) timeout 600 node "$here/flame_viewer.mjs" "$modules" "$scratch/x.html" \
  "$scratch/compared.html" "$pictures" >"$scratch/told" || fail "flame_viewer.mjs: $(tail -n 5 "$scratch/told")"
told() { sed -n "s/^$1|//p" "$scratch/told"; }
is "$(told error)" "" "nothing is complained of"
is "$(told foreign)" "" "nothing is asked for"
has "$scratch/told" '^done$' "to the end"
is "$(told axe)" "$(printf '%s|tried\n' light dark compared)" "axe-core finds nothing"
is "$(told hacked)" "no|0" "names are no elements"
instead() { sql "SELECT DISTINCT '$2' FROM profile_stacks WHERE profile = 2 AND metric = 'wall' AND kind = '$1' AND self > 0"; }
is "$(told metrics)" \
  "wall,$(instead asleep 'wall, not asleep,')self (running),$(instead waiting waiting,)$(instead asleep asleep,)$(instead gc gc,)calls" \
  "it has the metrics that the profile has"
has "$scratch/told" '^hover\|</script><img .* of all' "the pointer tells the name as it is"
has "$scratch/told" '^zoomed\|all › .*scenario_flame:handle/1' "a click zooms"
is "$(told 'zoom draws')" true "and draws it"
is "$(told back)" "all|true" "Escape takes it back"
is "$(told walked)" "$(told entered | sed 's/.* › //')" "Enter zooms to where the keys lead"
has "$scratch/told" '^sandwich\|.*\|2$' "s shows callers and callees"
is "$(told home)" all "Escape leads back from there"
is "$(told link)" "true|calls|flame" "a link to the file shows what was chosen: zoom, metric, direction"
is "$(told unzoomed)|$(told 'at first')" "all|calls|wall|" "back leads through it, to how it was at first"
# ns of a function, with all above it; none lies above itself
all_of() {
  sql "WITH RECURSIVE s AS (SELECT stack, parent, name, self FROM profile_stacks WHERE profile = 2 AND metric = 'wall'),
            up(stack, self, name) AS (SELECT stack, self, name FROM s WHERE self > 0
              UNION ALL SELECT p.stack, up.self, p.name FROM up JOIN s AS c ON c.stack = up.stack JOIN s AS p ON p.stack = c.parent
              WHERE c.stack <> p.stack)
       SELECT sum(self) FROM up WHERE name IN ($1)"
}
whole=$(sql "SELECT sum(self) FROM profile_stacks WHERE profile = 2 AND metric = 'wall'")
part=$(all_of "'scenario_flame:serve/0', 'scenario_flame:work/0'")
share=$(awk -v part="$part" -v whole="$whole" 'BEGIN { printf "%.1f", 100 * part / whole }')
is "$(told search)" "$share % of all, 2 names" "a search tells the share that it covers"
is "$(told table)" "scenario_flame:serve/0,scenario_flame:work/0" "and the table has what it finds"
is "$(told cleared)" "" "Escape takes it back"
is "$(told 'no expression')" "0 % of all, 0 names" "what is no regular expression is looked for as it is"
is "$(told 'outline draws')" true "a function of the table is outlined"
is "$(told metric | sed -n 's/^calls|.*|//p')" \
  "$(sql "SELECT max(n) FROM (SELECT sum(self) AS n FROM profile_stacks WHERE profile = 2 AND metric = 'calls' GROUP BY name)")" \
  "calls are those of the database"
is "$(told 'of another metric')" "" "what was told by another metric is gone"
is "$(told rows)|$(told 'rows folded')" "4|2" "chains fold"
holds "$(told sideways)" -le 320 "nothing is wider than 320 px"
has "$scratch/told" '^totals\|.*now .* before .* in profile 1' "both totals are told"
is "$(told vanished)" "200 ns g:h/4, called by c:d/2 ‹ a:b/1" "what vanished is told, as heavy as it would be now"
is "$(told changes)" \
  "g:h/4 0 0 ▼ −200 ns;e:f/3 999 ns 999 ns ▲ +199 ns;a:b/1 1 ns 1 µs ▲ +1 ns;c:d/2 0 999 ns 0" "and in the table"
has "$scratch/told" '^columns\|.*change' "a comparison has a column of change"
zooms=$(told 'many zooms') # how many frames were drawn; µs of script of the usual one, and of the worst
timely "$(echo "$zooms" | cut -d '|' -f 3)" -le 8000 "zooming among 100,000 frames: $zooms"
