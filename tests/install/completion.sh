#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: bash, zsh and fish, each with the completion that is installed for it, offer every command, every option of
# every command, and files and folders where an option wants one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export PATH=$installed/bin:$PATH HOME=$scratch/home
mkdir "$scratch/here" "$scratch/here/folder"
touch "$scratch/here/trace.cap" "$scratch/here/a b.db"
cd "$scratch/here"

# Each shell: offered_SHELL LINE prints what Tab offers at the end of the line, one a line.
# shellcheck disable=SC2317  # called by their names
offered_bash() {
  bash --norc -c '
    program=${1%% *}
    source "$2/share/bash-completion/completions/$program"
    read -ra COMP_WORDS <<<"$1"
    case $1 in *" ") COMP_WORDS+=("") ;; esac
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$1 COMP_POINT=${#1}
    complete -p "$program" | grep -q -- "-F _kprof" || exit 1
    _kprof
    [ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\n" "${COMPREPLY[@]}"' bash "$1" "$installed"
}
# shellcheck disable=SC2317
offered_fish() {
  fish --no-config -c "source '$installed/share/fish/vendor_completions.d/${1%% *}.fish'; complete -C '$1'" | cut -f 1 | sed 's,/$,,'
}
# A real Tab in a real zsh, on a terminal of its own; what would be shown is caught from compadd.
# shellcheck disable=SC2317
offered_zsh() {
  cat >"$scratch/zsh.zsh" <<'END'
zmodload zsh/zpty
zpty z "zsh -f -i"
zpty -w z "fpath=($KPROF_SITE \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w z 'compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  typeset -a hits; builtin compadd -A hits "$@"; print -l -- $hits >>$KPROF_OFFERED; builtin compadd "$@" }'
zpty -w z 'done-with() { print -n >$KPROF_OFFERED.done }; zle -N done-with; bindkey "^X^X" done-with; bindkey "^I" complete-word'
zpty -w z 'print -n >$KPROF_OFFERED.ready'
for i in {1..1000}; do [[ -e $KPROF_OFFERED.ready ]] && break; sleep 0.1; done
zpty -w -n z "$KPROF_LINE"$'\t'
zpty -w -n z $'\x18\x18'
for i in {1..1000}; do [[ -e $KPROF_OFFERED.done ]] && break; sleep 0.1; done
zpty -d z
END
  rm -f "$scratch/offered"*
  : >"$scratch/offered"
  KPROF_SITE=$installed/share/zsh/site-functions KPROF_LINE=$1 KPROF_OFFERED=$scratch/offered timeout 300 zsh -f "$scratch/zsh.zsh" ||
    return 1
  [ -e "$scratch/offered.done" ] || return 1
  sort -u "$scratch/offered" | sed '/^$/d'
}

# offers SHELL LINE WORDS: just these, in any order
offers() {
  is "$("offered_$1" "$2" | sort)" "$(tr ' ' '\n' <<<"$3" | sort)" "$1: $2"
}

for shell in bash zsh fish; do
  for command in $(commands); do
    is "$("offered_$shell" "kprof $command --" | sort)" \
      "$( (options "$kprof" "$command"; echo --help) | sort -u)" "$shell: kprof $command --"
  done
  offers $shell "kprof rep" "$(commands | grep '^rep' | tr '\n' ' ' | sed 's/ $//')"
  is "$("offered_$shell" "kprof " | grep -v '^-' | sort)" "$(commands | sort)" "$shell: kprof"
  is "$("offered_$shell" "kprof-collector --" | sort -u)" "$( (options "$collector"; echo --help) | sort -u)" "$shell: kprof-collector --"
  is "$("offered_$shell" "start_kprof_node.sh --" | sort)" "$( (options start_kprof_node.sh; echo --help) | sort)" \
    "$shell: start_kprof_node.sh --"
  offers $shell "stop_kprof_node.sh --no" "--node"
  offers $shell "kprof replay tr" "trace.cap"
  offers $shell "kprof replay --db tr" "trace.cap"
  offers $shell "kprof-collector --record " "folder"
  offers $shell "kprof slow --limit " ""
  offers $shell "kprof trace shop@host " "pause resume sample"
  offers $shell "kprof trace shop@host re" "resume"
  offers $shell "kprof trigger shop@host " "add list remove"
done
