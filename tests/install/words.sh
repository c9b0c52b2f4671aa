#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the manual pages are clean, and name every command, option and exit status that --help names, and no other.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for page in kprof.1 kprof-collector.8; do
  file=$(echo "$installed"/share/man/man?/$page)
  mandoc -Tlint -W warning "$file" >"$scratch/lint.log" || fail "mandoc -Tlint $page: $(cat "$scratch/lint.log")"
  ok "mandoc finds nothing in $page"
  LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$file" >"$scratch/$page.txt" 2>"$scratch/$page.warnings" </dev/null || fail "man -l $page"
  is "$(cat "$scratch/$page.warnings")" "" "man finds nothing in $page"
  holds "$(wc -l <"$scratch/$page.txt")" -gt 40 "it shows $page"
done

# page_options FILE [COMMAND]: the options that a page lists, of one command's section.
page_options() {
  awk -v section="${2:-}" '
    $1 == ".Ss" || $1 == ".Sh" { inside = (section == "" || $2 == section) }
    inside && $1 == ".It" { for (i = 2; i < NF; i++) if ($i == "Fl") print "-" $(i + 1) }' "$1" | sort -u
}
page=$installed/share/man/man1/kprof.1
is "$(sed -n 's/^\.Ss //p' "$page" | sort)" "$(commands | sort)" "kprof(1) has the commands of kprof --help"
for command in $(commands); do
  is "$(page_options "$page" "$command")" "$(options "$kprof" "$command")" "kprof(1) has the options of kprof $command"
done
page=$installed/share/man/man8/kprof-collector.8
is "$(page_options "$page")" "$(options "$collector")" "kprof-collector(8) has the options of kprof-collector"
statuses=$("$collector" --help | tr '\n' ' ' | sed 's/.*Exit status: //' | grep -oE '(^|[ ,])[0-9]+ [a-z]' | grep -oE '[0-9]+' | sort -un)
is "$(sed -n '/^\.Sh EXIT/,/^\.Sh SEE/s/^\.It \([0-9]*\)$/\1/p' "$page")" "$statuses" "and its exit statuses"

# The comparison sees a missing option.
sed -i '/^\.It Fl -db/d' "$page"
[ "$(page_options "$page")" != "$(options "$collector")" ] || fail "a page without --db passes"
ok "a missing option is seen"
