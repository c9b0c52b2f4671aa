#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: kprof sample --dir writes each look that it tells of into files that readers of perf script's text read, a new one so
# often, removes the oldest of its own files and nobody else's, keeps nothing in a database, and leaves nothing in the node, however it
# ends: Ctrl-C, kill -9, a disk that is full, a collector that sends nonsense.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

here=$(dirname "${BASH_SOURCE[0]}")
chmod 400 "$scratch/cookie"
export HOME=$scratch/home
node=rotate_$$@localhost
said=$scratch/said.log
dir=$scratch/looks

start_erl "rotate_$$"
is "$(target_eval "$node" 'scenario_sample:start().')" ok "the application runs"
is "$(target_eval "$node" 'scenario_left:prepare(), scenario_left:snapshot("before").')" ok "the node before"
untouched_now() { [ "$( (trap - EXIT; target_eval "$node" 'scenario_left:differences("before").') 2>/dev/null)" = "[]" ]; }
untouched() { wait_for "$1" "the node is as it was $2" untouched_now; ok "nothing is left in the node $2"; }
begin() { # ARGUMENT...: kprof sample in the background; what it says is in $said
  start "$said" "$kprof" sample "$node" --dir "$dir" --registered scenario_works --registered scenario_full --budget 10% "$@"
  pid=$!
}
count() { find "$dir" -name "$node-*.perf.txt" 2>/dev/null | wc -l; }
has_files() { [ "$(count)" -ge "$1" ] || gone "$pid"; }
# looks: in all files, by the rules of stackcollapse-perf.pl; one after the other they are one text, in which time goes on
looks() { cat "$dir/$node"-*.perf.txt | perl "$here/perf_reader.pl" | awk -F'|' '$1 == "collapse" { n += $3 } END { print n + 0 }'; }

# -- a node that has nothing of kprof: a collector of its own, and nothing of it stays -----------------------------------
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp begin --for 5s --rotate 1s --flush 1s
wait_for 60 "files" has_files 1
ends "$pid" 60
is "$status" 0 "kprof sample --dir: $(tail -n 1 "$said")"
has "$said" "^wrote [0-9,]+ of [0-9,]+ looks into [0-9]+ files in $dir, the last one $node-.*\.perf\.txt$" "what it wrote"
read -r wrote all made <<<"$(sed -nE 's/^wrote ([0-9,]+) of ([0-9,]+) looks into ([0-9]+) files .*/\1 \2 \3/p' "$said" | tr -d ,)"
is "$wrote" "$all" "each look was written"
holds "$wrote" -ge 50 "there were looks"
is "$(count)" "$made" "as many files as it says"
holds "$made" -ge 2 "a new one each second"
is "$(looks)" "$wrote" "each look is in one file"
is "$(find "$dir" -name "$node-*" ! -perm 0600 | wc -l)" 0 "they are nobody else's to read"
has "$(find "$dir" -name "$node-*" | sort | head -n 1)" 'metric_erlang_reductions: [0-9]+, -?[0-9]+ ' "with metrics"
cat "$dir/$node"-*.perf.txt | perl "$here/perf_reader.pl" >"$scratch/read"
for function in works/0 one/1 two/1 is_full/0; do
  has "$scratch/read" "^flamescope\|scenario_sample:$function\|" "what ran stands there: $function"
done
is "$(find "$scratch/tmp" -mindepth 1 | wc -l)" 0 "no database is left"
is "$(find "$scratch" -name '*.db' | wc -l)" 0 "anywhere"
untouched 2 "after it"

# -- Ctrl-C; the oldest go, strangers stay -------------------------------------------------------------------------------
start_collector
through=(--collector "127.0.0.1:$collector_port")
rm -r "$dir"
mkdir "$dir"
strangers=("$dir/$node-2020-01-01T00-00-00Z.perf.txt" "$dir/$node-2099-01-01T00-00-00Z.perf.txt" "$dir/notes.txt")
for stranger in "${strangers[@]}"; do echo "a stranger's" >"$stranger"; done
begin "${through[@]}" --rotate 1s --keep 2 --metric active
removed() { [ -n "$(comm -13 <(ls "$dir") "$scratch/first")" ] || gone "$pid"; }
wait_for 60 "files" has_files 4
ls "$dir" >"$scratch/first"
wait_for 60 "the oldest is removed" removed
kill -INT "$pid"
ends "$pid" 60
is "$status" 0 "Ctrl-C ends it: $(tail -n 1 "$said")"
has "$said" '; the oldest (of them was|[0-9]+ of them were) removed$' "it says that it removed some"
is "$(count)" 4 "two of its own and two of others"
for stranger in "${strangers[@]}"; do is "$(cat "$stranger")" "a stranger's" "a stranger's file is left alone"; done
rm "${strangers[@]}"
holds "$(looks)" -ge 1 "its last file is whole"
is "$(sql 'SELECT count(*) FROM profiles')" 0 "nothing is kept in the collector's database"
untouched 2 "after Ctrl-C"

# -- killed, and a disk that is full -------------------------------------------------------------------------------------
rm "$dir"/*
begin "${through[@]}" --flush 1s
flushed() { [ -n "$(find "$dir" -name "$node-*" -size +0)" ] || gone "$pid"; }
wait_for 60 "looks are on the disk" flushed
kill -KILL "$pid"
holds "$(looks)" -ge 1 "what was flushed is whole"
untouched 20 "after kill -9"

rm "$dir"/*
begin_in_little_room() {
  # a file may have 200 KB, which is told like a full disk
  (trap '' XFSZ; ulimit -f 200; exec "$kprof" sample "$node" --dir "$dir" --registered scenario_works --budget 10% --hz 200 --flush 1s \
    "${through[@]}" >"$said" 2>&1) &
  pid=$!
}
begin_in_little_room
ends "$pid" 120
is "$status" 1 "a file that cannot be written ends it"
has "$said" "^kprof sample: cannot write $dir/$node-.*: File too large$" "and it says which"
has "$said" '^wrote [0-9,]+ of [0-9,]+ looks into 1 file ' "and what is there"
read -r wrote all <<<"$(sed -nE 's/^wrote ([0-9,]+) of ([0-9,]+) looks .*/\1 \2/p' "$said" | tr -d ,)"
holds "$wrote" -lt "$all" "which is not all"
holds "$wrote" -ge 1 "and not nothing"
is "$(looks)" "$wrote" "what is there is whole"
untouched 2 "after that"

# -- refused -------------------------------------------------------------------------------------------------------------
refuses() { # STATUS PATTERN WHAT ARGUMENT...
  local want=$1 pattern=$2 what=$3 got=0
  shift 3
  timeout 60 "$kprof" sample "$node" "${through[@]}" "$@" >"$scratch/refusal.log" 2>&1 || got=$?
  is "$got" "$want" "$what: $(tail -n 1 "$scratch/refusal.log")"
  has "$scratch/refusal.log" "$pattern" "$what, and why"
}
for clash in "--db $db" "--out $scratch/x.svg" --json "--group status"; do
  # shellcheck disable=SC2086 # its words
  refuses 2 "nothing that ${clash%% *} could be for" "--dir with ${clash%% *}" --dir "$dir" $clash
done
for alone in "--rotate 1s" "--keep 2" "--flush 1s"; do
  # shellcheck disable=SC2086 # its words
  refuses 2 "^kprof sample: ${alone%% *} is for files of --dir$" "${alone%% *} alone" $alone
done
refuses 2 'no number from 1' "--keep 0" --dir "$dir" --keep 0
refuses 1 "cannot make $scratch/no/such: No such file" "a folder in a folder that is not there" --dir "$scratch/no/such"
refuses 1 "cannot write to $scratch/cookie: Not a directory" "a file" --dir "$scratch/cookie"
refuses 10 'nothing to look at' "a process that is not there" --dir "$dir" --pid '<0.99999.0>'
untouched 2 "after refusals"

# -- a collector that sends nonsense -------------------------------------------------------------------------------------
for lie in looks_no_time looks_no_bytes looks_no_records looks_of_nobody looks_of_ages bytes; do
  rm -f "$scratch/liar.port"
  start "$scratch/liar.log" python3 "$here/top_liar.py" "$node" "$lie" "$scratch/liar.port"
  wait_for 20 "the liar listens" test -s "$scratch/liar.port"
  through=(--collector "127.0.0.1:$(cat "$scratch/liar.port")")
  refuses 1 '^kprof sample: (what the collector sends are no samples|the collector is gone: )' "nonsense from a collector ($lie)" \
    --dir "$dir"
done
is "$(find "$dir" -newer "$scratch/refusal.log" | wc -l)" 0 "nothing was written of it"
