#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the C files of collector/ and include/ include downwards only. Usage: scripts/check_arrows.sh
#
# The build keeps a layer from including one above it (collector/CMakeLists.txt). This looks inside of the layers: a header and the .c file
# of its name are one part, and no parts include each other in a circle; the rooms of model/ include themselves and those before them. One
# noun that is cut in two counts as one part: cut_from has these.
set -eu
cd "$(dirname "$0")/.."
# shellcheck disable=SC2046  # paths without blanks
awk -v rooms="directory message requests stats profile" '
    BEGIN {
        cut_from["model/requests/tracker"] = "model/requests/requests" # the structs behind it
        cut_from["model/requests/span_parents"] = "model/requests/request_tree"
        cut_from["model/profile/full_state"] = "model/profile/full_trace"
        cut_from["model/message/message_learned"] = "model/message/message"
        cut_from["model/message/message_note"] = "model/message/message"
        cut_from["ingest/pipeline_node"] = "ingest/pipeline"
        cut_from["app/flame_state"] = "app/flames"
        cut_from["app/stack_run_state"] = "app/stack_runs"
        cut_from["app/tool_state"] = "app/tool_link"
        cut_from["report/meters_inside"] = cut_from["report/meters_text"] = "report/meters"
        cut_from["web/metrics"] = "web/answers" # the answers that are no JSON
        cut_from["net/internal"] = "net/server"
        cut_from["net/sessions"] = "net/session"
        cut_from["store/internal"] = cut_from["store/query"] = "store/store"
        cut_from["store/mirror"] = cut_from["store/changes"] = "store/store" # whose tables they have
        for (n = split(rooms, list, " "); n > 0; n--) order[list[n]] = n
    }
    FNR == 1 { folder = folder_of(FILENAME); part = part_of(FILENAME) }
    /^#include "/ {
        path = substr($2, 2, length($2) - 2)
        if (path !~ /\//) path = folder path
        to = part_of(path)
        if (to != part) below[part] = below[part] " " to
        parts[part] = parts[to] = 1
        if (room(to) > room(part) && room(part) > 0) problem(part " includes " to ", of a room above its own")
    }
    END {
        # takes away what includes nothing that is left; what stays is in a circle, or above one
        do {
            taken = 0
            for (p in parts) if (!includes_left(p)) { delete parts[p]; taken = 1 }
        } while (taken)
        # and what nothing that is left includes
        do {
            taken = 0
            for (p in parts) if (!included(p)) { delete parts[p]; taken = 1 }
        } while (taken)
        for (p in parts) { problem("in a circle: " p " includes" left_of(p)) }
        if (problems) exit 1
        print "all includes look down"
    }
    function part_of(path) {
        sub(/^(collector|include)\//, "", path)
        sub(/\.[ch]$/, "", path)
        return path in cut_from ? cut_from[path] : path
    }
    function folder_of(path) { sub(/^(collector|include)\//, "", path); sub(/[^\/]*$/, "", path); return path }
    function room(path,    names) { return split(path, names, "/") > 2 && names[1] == "model" ? order[names[2]] : 0 }
    function left_of(p,    n, list, i, text) {
        n = split(below[p], list, " ")
        for (i = 1; i <= n; i++) if (list[i] in parts) text = text " " list[i]
        return text
    }
    function includes_left(p) { return left_of(p) != "" }
    function included(p,    other) {
        for (other in parts) if (index(below[other] " ", " " p " ")) return 1
        return 0
    }
    function problem(text) { print text > "/dev/stderr"; problems++ }
' $(git ls-files 'collector/*.[ch]' 'include/*.h')
