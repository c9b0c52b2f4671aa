#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the manifests in scripts/kubernetes are what Kubernetes' schemas say, and mistakes in them are found.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$top/tests/page/modules.sh"

page_drivers
manifests=("$top"/scripts/kubernetes/*.yaml)
holds "${#manifests[@]}" -ge 3 "there are manifests"
works manifests "${manifests[@]}"

# wrong SED PATTERN WHAT: with that change the check fails, and says so.
wrong() {
  local code=0
  sed "$1" "$top/scripts/kubernetes/collector.yaml" >"$scratch/wrong.yaml"
  HOME=$scratch/home node "$drivers/manifests.js" "$scratch/wrong.yaml" >"$scratch/wrong.txt" 2>&1 || code=$?
  is "$code" 1 "$3 is a mistake"
  has "$scratch/wrong.txt" "$2" "and told"
}
wrong 's/readOnlyRootFilesystem/readOnlyRootFileSystem/' "readOnlyRootFileSystem.* does not exist" "a field that Kubernetes does not know"
wrong 's/replicas: 1/replicas: one/' 'replicas must be integer' "a word for a number"
wrong '/name: collector/s/name/nick/' 'property .?name' "a container without a name"
