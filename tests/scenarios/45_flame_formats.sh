#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: every file that `kprof flame` writes is read by a program that others wrote, and what that reads in it is what the
# database has: speedscope's importers (all but the picture), go tool pprof, callgrind_annotate, a browser. For perf's text there is a
# reader by the rules of FlameScope and stackcollapse-perf.pl. In the browser the picture is hovered over, zoomed and searched.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/profile.sh"
here=$(dirname "${BASH_SOURCE[0]}")

# -- a profile of ten requests -----------------------------------------------------------------------------------------
profiled_app "formats_$$" 'fun({_, _, [Name]}) -> Name end'
profile_of 10

is "$(sql 'SELECT requests FROM profiles')" 10 "there is a profile of ten requests"

# truth METRIC: name|itself|with all above it, ns or calls, of the functions that weigh anything. No function lies above itself.
truth() {
  local metric=$1 kinds="'function', 'waiting', 'asleep', 'gc'" of=wall per=1000
  case $metric in
    calls) of=calls per=1 ;;
    wall) ;;
    self) kinds="'function'" ;;
    *) kinds="'$metric'" ;;
  esac
  sql "WITH RECURSIVE s AS (SELECT stack, parent, name, CASE WHEN kind IN ($kinds) THEN self ELSE 0 END AS self FROM profile_stacks
                  WHERE profile = 1 AND metric = '$of'),
            up(stack, self, name, top) AS (
              SELECT stack, self, name, 1 FROM s WHERE self > 0
              UNION ALL
              SELECT p.stack, up.self, p.name, 0 FROM up JOIN s AS c ON c.stack = up.stack JOIN s AS p ON p.stack = c.parent
              WHERE c.stack <> p.stack)
       SELECT name, CAST(round(sum(self * top) * $per) AS INTEGER), CAST(round(sum(self) * $per) AS INTEGER) FROM up WHERE stack <> 0
       GROUP BY name ORDER BY name"
}
truth wall >"$scratch/truth"
whole=$(sql "SELECT CAST(round(sum(self) * 1000) AS INTEGER) FROM profile_stacks WHERE profile = 1 AND metric = 'wall'")
stacks=$(sql "SELECT count(*) FROM profile_stacks WHERE profile = 1 AND metric = 'wall'")
holds "$(wc -l <"$scratch/truth")" -ge 15 "the profile has many functions"
holds "$whole" -gt 100000000 "and lasts long enough to be judged"

outs=()
for form in svg collapsed speedscope.json chrome.json pprof callgrind perf.txt; do outs+=(--out "$scratch/x.$form"); done
"$kprof" flame --db "$db" --profile 1 "${outs[@]}" >"$scratch/drawn.txt"
for metric in calls waiting; do
  "$kprof" flame --db "$db" --profile 1 --metric "$metric" --out "$scratch/$metric.callgrind" --out "$scratch/$metric.perf.txt" >/dev/null
done

# near FILE TRUTH SLACK WHAT: of both files lines name|itself|with all above it; the first may have how far a line may be off behind it.
# Lines that weigh no more than that may be missing.
near() {
  local differ
  differ=$(awk -F'|' -v slack="$3" '
    function off(a, b) { return a > b ? a - b : b - a }
    NR == FNR { own[$1] = $2; all[$1] = $3; next }
    { seen[$1] = 1; by = slack + $4
      if ($1 in own ? off($2, own[$1]) > by || off($3, all[$1]) > by : $3 > by) print $1 ": " $2 ", " $3 ", not " own[$1] ", " all[$1] }
    END { for (name in own) if (!(name in seen) && all[name] > slack) print name " is missing" }' "$2" "$1")
  is "$differ" "" "$4 ($(wc -l <"$1") functions)"
}
exactly() { near "$1" "$2" 0 "$3"; }

# -- go tool pprof -----------------------------------------------------------------------------------------------------
pprof() { HOME=$scratch/home timeout 120 go tool pprof "$@" 2>"$scratch/pprof.log" || fail "pprof $*"; }
for metric in wall self waiting asleep gc calls; do
  unit=$(if [ "$metric" != calls ]; then echo ns; fi)
  pprof -top -sample_index="$metric" -unit="${unit:-minimum}" -nodecount=100000 -nodefraction=0 "$scratch/x.pprof" |
    awk -v unit="$unit" 'table && NF >= 6 { sub(unit "$", "", $1); sub(unit "$", "", $4); if ($4 > 0) print $6 "|" $1 "|" $4 }
                         $1 == "flat" { table = 1 }' >"$scratch/rows"
  truth "$metric" >"$scratch/of"
  exactly "$scratch/rows" "$scratch/of" "go tool pprof reads $metric"
done
pprof -tags -unit=ns "$scratch/x.pprof" >"$scratch/tags"
has "$scratch/tags" "^ *identity: Total ${whole}.*ns" "its labels name identities"
has "$scratch/tags" ": create$" "the requests' own"
has "$scratch/tags" ": $node$" "and the node"
# each process with what ran in it: process|ns
sql "SELECT process, CAST(round(sum(self_us) * 1000) AS INTEGER) FROM profile_processes WHERE profile = 1
     GROUP BY process ORDER BY process" >"$scratch/processes"
is "$(cut -d '|' -f 1 "$scratch/processes" | paste -sd ' ')" "scenario_flame_client scenario_flame_loop scenario_flame_server" \
  "the processes go by their registered names"
is "$(sed -nE 's/^ *([0-9]+)(\.0*)?ns \([^)]*\): (scenario_flame_.*)$/\3|\1/p' "$scratch/tags" | sort)" \
  "$(cat "$scratch/processes")" "and so do the labels, with what each of them did"
for process in client loop server; do
  pprof -top -sample_index=self -unit=ns -nodecount=100 -nodefraction=0 -tagfocus="process=scenario_flame_$process" "$scratch/x.pprof" |
    awk 'table && $1 + 0 > 0 { sub("ns$", "", $1); print $6 "|" $1 } $1 == "flat" { table = 1 }' | sort >"$scratch/rows"
  sql "SELECT name, CAST(round(sum(self_us) * 1000) AS INTEGER) AS ns FROM profile_processes
       WHERE profile = 1 AND kind = 'function' AND process = 'scenario_flame_$process' GROUP BY name HAVING ns > 0" | sort >"$scratch/of"
  is "$(cat "$scratch/rows")" "$(cat "$scratch/of")" "-tagfocus shows what $process runs"
done
is "$(cut -d '|' -f 1 "$scratch/of" | paste -sd ' ')" "scenario_flame:handle_call/3 scenario_flame:serve/0" \
  "the server its own functions alone"
pprof -top -tagroot=process -unit=ns -nodecount=100 -nodefraction=0 "$scratch/x.pprof" >"$scratch/rooted"
has "$scratch/rooted" "^ *0 .* $(sed -n 's/^scenario_flame_loop|//p' "$scratch/processes")ns .* scenario_flame_loop$" \
  "-tagroot puts them below all others"
is "$(cat "$scratch/pprof.log")" "" "it complains of nothing"
pprof -comments "$scratch/x.pprof" >"$scratch/comments"
has "$scratch/comments" '^Profile 1: 10 requests' "what the profile is of stands in it"

# -- callgrind_annotate ------------------------------------------------------------------------------------------------
annotated() { # annotated FILE [OPTION...]: name|ns
  callgrind_annotate --threshold=100 "${@:2}" "$1" 2>>"$scratch/annotate.log" |
    sed -nE 's/^ *([0-9,]+) +\([ 0-9.]+%\) +\?\?\?:(.*[^ ]) *$/\2|\1/p' | tr -d , | grep -v '^all|' | LC_ALL=C sort -t '|' -k 1,1
}
for metric in wall waiting calls; do
  file=$scratch/$metric.callgrind
  [ "$metric" != wall ] || file=$scratch/x.callgrind
  annotated "$file" >"$scratch/own"
  annotated "$file" --inclusive=yes >"$scratch/with"
  LC_ALL=C join -t '|' -a 2 -e 0 -o 0,1.2,2.2 "$scratch/own" "$scratch/with" >"$scratch/rows"
  if [ "$metric" = waiting ]; then # the last function is who waits
    is "$(awk -F'|' '{ n += $2 } END { print n }' "$scratch/rows")" "$(truth waiting | awk -F'|' '{ n += $2 } END { print n }')" \
      "callgrind_annotate reads the waiting in all"
  else
    truth "$metric" >"$scratch/of"
    exactly "$scratch/rows" "$scratch/of" "callgrind_annotate reads $metric"
  fi
done
is "$(cat "$scratch/annotate.log")" "" "it complains of nothing"

# -- perf's text -------------------------------------------------------------------------------------------------------
reads_perf() { "$here/perf_reader.pl" <"$1" >"$scratch/perf" || fail "the text of perf script in $1"; }
rows_of() { sed -n "s/^$1|//p" "$scratch/perf"; }
for metric in wall calls; do
  file=$scratch/$metric.perf.txt
  [ "$metric" != wall ] || file=$scratch/x.perf.txt
  reads_perf "$file"
  rows_of collapse >"$scratch/rows"
  truth "$metric" >"$scratch/of"
  exactly "$scratch/rows" "$scratch/of" "stackcollapse-perf.pl's rules give $metric"
done
reads_perf "$scratch/x.perf.txt"
# each stack has up to one sample more than it is worth
rows_of flamescope | awk -F'|' -v whole="$whole" '{ print $1 "|" $2 * whole / 5000 "|" $3 * whole / 5000 }' >"$scratch/rows"
near "$scratch/rows" "$scratch/truth" $((stacks * whole / 5000)) "FlameScope's rules give the same shares"
is "$(rows_of seconds | awk -F'|' -v s="$whole" '{ d = s / 1e9 - $2; print (d >= 0 && d < s / 2e12) }')" 1 \
  "from the first sample to the last as long as all together"

# -- the browser -------------------------------------------------------------------------------------------------------
# browse URL: its document, when its scripts are done, is in $scratch/dom.
browse() {
  HOME=$scratch/home timeout 300 chromium --headless --no-sandbox --enable-unsafe-swiftshader --no-first-run \
    --disable-background-networking --proxy-server=127.0.0.1:9 --allow-file-access-from-files \
    --user-data-dir="$scratch/browser" --window-size=1400,2000 \
    --enable-logging=stderr --virtual-time-budget=20000 --dump-dom "$1" >"$scratch/dom" 2>"$scratch/browser.txt" || fail "chromium with $1"
  grep CONSOLE "$scratch/browser.txt" >"$scratch/browser.log" || true # what scripts say
}
entities() { sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g'; }

sed -e '/<\/svg>/d' "$scratch/x.svg" >"$scratch/driven.svg"
{
  echo '<script><![CDATA['
  cat "$here/flame_svg_driver.js"
  echo ']]></script></svg>'
} >>"$scratch/driven.svg"
browse "file://$scratch/driven.svg"
sed -n '/>driver$/,/^driven$/p' "$scratch/dom" | entities >"$scratch/driver"
told() { sed -n "s/^$1|//p" "$scratch/driver"; }
is "$(told error)" "" "the picture is worked without an error"
is "$(cat "$scratch/browser.log")" "" "its script says nothing"
has "$scratch/driver" '^driven$' "to the end"
# px of each frame; all are 1180 wide, and written to the hundredth
told frame | awk -F'|' -v whole="$whole" '{ w[$1] += $2; n[$1]++ }
  END { for (f in w) if (f != "all") print f "|0|" w[f] * whole / 1180 "|" n[f] * whole * 0.006 / 1180 }' >"$scratch/rows"
sed 's/|[0-9]*|/|0|/' "$scratch/truth" >"$scratch/of"
near "$scratch/rows" "$scratch/of" $((whole / 11800)) "frames are as wide as they are heavy"
has "$scratch/driver" '^hover|waiting: [0-9.]+ ms, [0-9.]+ %' "the pointer over a frame tells what it weighs"
is "$(told 'hover ended')" "" "and no longer behind it"
is "$(told zoomed)" "1180.00|scenario_flame:handle_call/3|true" "a click makes a frame as wide as the picture, with its whole name"
is "$(told 'zoomed shows')" "all,scenario_flame:handle/1,scenario_flame:handle_call/3,scenario_flame:serve/0" "with what is below and above"
is "$(told reset)" "true|false" "a click takes the zoom back"
is "$(told escape)" true "Escape too"
share() { # share NAME...: percent of the whole that functions which lie side by side cover
  printf '%s\n' "$@" | awk -F'|' -v whole="$whole" '
    NR == FNR { all[$1] = $3; next } { n += all[$1] } END { printf "%.1f", 100 * n / whole }' "$scratch/truth" -
}
is "$(told search)" "Matched: $(share scenario_flame:serve/0 scenario_flame:work/0) %|scenario_flame:serve/0,scenario_flame:work/0" \
  "a search marks what it finds, and tells the share"
is "$(told cleared)" "|" "which a click takes back"
is "$(told 'search within')" "Matched: 100.0 %|scenario_flame:handle/1,scenario_flame:inner/0" "frames above one another count once"
is "$(told escaped)" "|" "Escape takes it back"
is "$(told 'no expression')" "Matched: 0.0 %|" "what is no regular expression is looked for as it is"
is "$(told 'no search')" "" "and who does not say what searches nothing"

# -- speedscope --------------------------------------------------------------------------------------------------------
# Once, checked, into the user's cache. The sum is of the package as npm has it.
speedscope=${XDG_CACHE_HOME:-$HOME/.cache}/kprof/speedscope-1.25.0
speedscope_sum=cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXVOQiMf44PT+XoV503cPfvfiT5gP5vojp6Ag==
if [ ! -d "$speedscope" ]; then
  if (cd "$scratch" && HOME=$scratch/home timeout 300 npm pack --silent speedscope@1.25.0 >npm.log 2>&1); then
    is "$(openssl dgst -sha512 -binary "$scratch/speedscope-1.25.0.tgz" | base64 -w 0)" "$speedscope_sum" "npm's package is the known one"
    tar -xzf "$scratch/speedscope-1.25.0.tgz" -C "$scratch"
    mkdir -p "$(dirname "$speedscope")"
    mv -T "$scratch/package" "$speedscope" || [ -d "$speedscope" ]
  else
    unjudged+=("what speedscope reads: npm cannot get it ($(tail -n 1 "$scratch/npm.log"))")
    exit 0
  fi
fi

# imports FILE [NAME]: speedscope's table of functions is in $scratch/rows, as near takes it; of a file with several profiles, name|ns of
# each are in $scratch/list.
imports() {
  printf 'speedscope.loadFileFromBase64("%s", "%s")\n' "${2:-$(basename "$1")}" "$(base64 -w 0 "$1")" >"$scratch/load.js"
  browse "file://$speedscope/dist/release/index.html#localProfilePath=${scratch#/}/load.js&view=sandwich"
  # texts of the document: a row is total, self, name; a profile in the list number, name, weight
  sed 's/<[^>]*>/\n/g' "$scratch/dom" | entities | sed '/^ *$/d' >"$scratch/texts"
  has "$scratch/texts" '^Symbol Name$' "speedscope reads $(basename "$1")"
  amounts='
    function ns(text) { sub(/ \(.*/, "", text); gsub(/,/, "", text); unit = 1
      if (sub(/µs$/, "", text)) unit = 1000; else if (sub(/ms$/, "", text)) unit = 1000000
      else if (sub(/ns$/, "", text)) unit = 1; else if (sub(/s$/, "", text)) unit = 1000000000
      by = unit == 1 ? 0 : unit * 0.00501; return text * unit }'
  sed '1,/^Symbol Name$/d' "$scratch/texts" | awk "$amounts"'
    NR % 3 == 1 { all = ns($0); most = by } NR % 3 == 2 { own = ns($0) }
    NR % 3 == 0 && $0 != "all" { printf "%s|%.0f|%.0f|%.0f\n", $0, own, all, most + by + 0.5 }' >"$scratch/rows"
  sed -n '/^Total Weight$/,/^⤴/p' "$scratch/texts" | sed '1d;$d' | awk "$amounts"'
    NR % 3 == 2 { name = $0 } NR % 3 == 0 { printf "%s|%.0f|%.0f\n", name, ns($0), by + 0.5 }' >"$scratch/list"
}

imports "$scratch/x.speedscope.json"
near "$scratch/rows" "$scratch/truth" 0 "speedscope reads wall times in its own form"
for metric in wall self waiting; do
  is "$(awk -F'|' -v name="$metric" -v is="$(truth "$metric" | awk -F'|' '{ n += $2 } END { print n }')" \
        '$1 == name { d = $2 - is; print ((d < 0 ? -d : d) <= $3) }' "$scratch/list")" 1 "and $metric in all"
done
# the longest request, a profile for each process: the first one is with it from begin to end
longest=$(sql 'SELECT longest_ns FROM profile_rows')
lasts_as_long() {
  is "$(awk -F'|' -v is="$longest" 'NR == 1 { d = $2 - is; print ((d < 0 ? -d : d) <= $3) }' "$1")" 1 \
    "the longest request is as long as it was ($longest ns)"
}
grep '^longest request' "$scratch/list" >"$scratch/longest"
lasts_as_long "$scratch/longest"
holds "$(wc -l <"$scratch/longest")" -ge 3 "in the processes that it went through"
is "$(awk -F'|' '$1 == "calls" { print $2 }' "$scratch/list")" "$(truth calls | awk -F'|' '{ n += $2 } END { print n }')" "and calls in all"

imports "$scratch/x.pprof"
near "$scratch/rows" "$scratch/truth" 0 "the same in pprof's form"
imports "$scratch/x.callgrind"
exactly "$scratch/rows" "$scratch/truth" "the same in callgrind's form"
imports "$scratch/x.collapsed"
awk -F'|' '{ print $1 "|" 1000 * $2 "|" 1000 * $3 "|0" }' "$scratch/rows" >"$scratch/us"
near "$scratch/us" "$scratch/truth" $((500 * stacks)) "the same in collapsed stacks, which are whole µs"
imports "$scratch/x.perf.txt"
near "$scratch/rows" "$scratch/truth" $((whole / 5000 + 1)) "the same in perf's text, less its first sample"
# speedscope takes what is called .chrome.json for another form of Chrome's
imports "$scratch/x.chrome.json" request.json
lasts_as_long "$scratch/list"
is "$(cut -d '|' -f 2 "$scratch/list")" "$(cut -d '|' -f 2 "$scratch/longest")" "and each process did as much in either form"
is "$(sed -n 's|^scenario_flame:handle/1.[0-9]*.\([0-9]*\).*|\1|p' "$scratch/rows")" "$(head -n 1 "$scratch/list" | cut -d '|' -f 2)" \
  "its first function as long as all of it"
