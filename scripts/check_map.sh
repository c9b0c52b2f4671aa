#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the maps: the section "## Map" of every README.md. Every tracked file is named exactly once, by the map of the nearest README.md
# above it, and no map names anything else. Links of a README.md to files lead somewhere. Usage: scripts/check_map.sh
#
# A row of a map names files in its first cell: one path in backticks, or several with commas between them. Paths begin at the README's
# folder. A path that ends with / stands for all files below it, and one with a * for all files that it matches: of those that the map
# does not name otherwise, and that no other README is nearer to. A README.md stands on the map above its own folder. include/ has no
# README.md: collector/README.md names its files, by their paths from the root.
set -eu
cd "$(dirname "$0")/.."
# shellcheck disable=SC2046  # paths without blanks
git ls-files | awk '
    # first each README.md, then the tracked files on stdin
    FILENAME != "-" && FNR == 1 {
        folder = substr(FILENAME, 1, length(FILENAME) - length("README.md"))
        sections[folder] = in_map = 0
    }
    FILENAME != "-" && /^## / { in_map = ($0 ~ /^## Map[ \t]*$/); sections[folder] += in_map }
    FILENAME != "-" {
        lines[folder]++
        take_links($0)
        if (in_map && /^\|[ \t]*`/) take_row($0)
        above = $0
        next
    }
    {
        delete linked[$0]
        map = map_of($0)
        n = 0
        if ($0 in row_of) {
            n = 1
            used[$0] = 1
            if (row_of[$0] != map) problem($0 " is on the map of " row_of[$0] "README.md, but belongs on that of " map "README.md")
        } else {
            for (path in row_of) {
                if (row_of[path] == map && covers(path, $0)) { n++; used[path] = 1 }
            }
        }
        if (n == 0) problem($0 " is not on the map of " map "README.md")
        if (n > 1) problem($0 " is on the map of " map "README.md " n " times, by folders or *")
    }
    # The first cell of a row: `path`, `path`, ...
    function take_row(row,    cell, path) {
        if (above !~ /^\|/) problem(folder "README.md: the table of the map is broken before this row: " row)
        cell = row
        sub(/^\|[ \t]*/, "", cell)
        sub(/[ \t]*\|.*/, "", cell)
        while (match(cell, /^`[^`]+`/)) {
            path = substr(cell, 2, RLENGTH - 2)
            cell = substr(cell, RLENGTH + 1)
            sub(/^,[ \t]*/, "", cell)
            if (folder != "collector/" || path !~ /^include\//) path = folder path
            if (path in row_of) problem(path " is on the map twice")
            row_of[path] = folder
        }
        if (cell != "") problem(folder "README.md: the first cell of a row of the map has more than paths: " row)
    }
    # [text](path) and [text](path#section), without those to other hosts and to the page itself.
    function take_links(line,    path) {
        while (match(line, /\]\([^)#: ]+/)) {
            path = folder substr(line, RSTART + 2, RLENGTH - 2)
            line = substr(line, RSTART + RLENGTH)
            if (line ~ /^:/) continue
            while (sub(/[^\/]+\/\.\.\//, "", path)) { }
            linked[path] = folder
        }
    }
    # The folder of the README.md whose map names a file.
    function map_of(file) {
        if (file ~ /^include\//) return "collector/"
        sub(/\/README\.md$/, "", file) # its own folder is below the map
        while (sub(/[^\/]*\/?$/, "", file) && file != "") {
            if (file in sections) return file
        }
        return ""
    }
    function covers(path, file) {
        if (path ~ /\/$/) return index(file, path) == 1
        if (path !~ /\*/) return 0
        gsub(/\./, "[.]", path)
        gsub(/\*/, "[^/]*", path)
        return file ~ ("^" path "$")
    }
    function problem(text) { print text > "/dev/stderr"; problems++ }
    END {
        for (folder in sections) if (sections[folder] != 1) problem(folder "README.md needs exactly one section \"## Map\"")
        for (path in row_of) {
            if (!(path in used)) problem(path " is on the map of " row_of[path] "README.md, but stands for no tracked file")
        }
        for (path in linked) problem("a link in " linked[path] "README.md leads to " path ", which is no tracked file")
        if (lines[""] > 250) problem("README.md has " lines[""] " lines; 250 are the most")
        if (problems) exit 1
        print "the maps name every file once"
    }' $(git ls-files README.md '*/README.md') -
