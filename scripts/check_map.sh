#!/bin/sh
# Checks that README.md's map (section "## Map") names every tracked file exactly once: a list line or a table row that starts with
# the path in backticks. A path that ends with / stands for everything below that folder (data).
# Usage: scripts/check_map.sh
set -eu
cd "$(dirname "$0")/.."
if [ ! -f README.md ]; then
    echo "README.md is missing" >&2
    exit 1
fi
git ls-files | awk '
    # first README.md, then the tracked files on stdin
    FILENAME != "-" && /^## / { in_map = ($0 ~ /^## Map[ \t]*$/); if (in_map) sections++; next }
    FILENAME != "-" {
        if (in_map && match($0, /^[ \t]*[-*|][ \t]*`[^`]+`/)) {
            path = substr($0, RSTART, RLENGTH)
            sub(/^[^`]*`/, "", path)
            sub(/`$/, "", path)
            if (path in line) problem(path " is on the map twice")
            line[path] = 1
            if (path ~ /\/$/) folder[path] = 1
        }
        next
    }
    {
        tracked[$0] = 1
        n = ($0 in line) ? 1 : 0
        if (n) used[$0] = 1
        for (f in folder) {
            if (index($0, f) == 1) { n++; used[f] = 1 }
        }
        if (n == 0) problem($0 " is not on the map")
        if (n > 1) problem($0 " is on the map " n " times (by a folder, too)")
    }
    function problem(text) { print text > "/dev/stderr"; problems++ }
    END {
        if (sections != 1) problem("README.md needs exactly one section \"## Map\"")
        for (path in line) if (!(path in used)) problem(path " is on the map, but no tracked file")
        if (problems) exit 1
        print "the map names every file once"
    }' README.md -
