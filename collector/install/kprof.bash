# SPDX-License-Identifier: Apache-2.0
# bash completion of kprof, kprof-collector and the scripts of the kprof node. It knows nothing itself: it asks the program for
# its --help, so that every command and option of the installed release is offered.

_kprof_commands() { "$1" --help 2>/dev/null </dev/null | sed -nE 's/^  ([a-z][a-z0-9-]*)  .*/\1/p'; }

# _kprof_options PROGRAM [COMMAND]: a line for each option, "--name VALUE"; without VALUE when it takes none.
_kprof_options() {
  "$@" --help 2>/dev/null </dev/null | sed -nE 's/^ +(-[a-z], )?(--[a-z][a-z0-9-]*)([ =](\[?[A-Z][^ ]*))?.*/\2 \4/p'
}

# _kprof_words PROGRAM COMMAND N: what may stand as its Nth word, as its usage says: words, or names of nodes that the collector on this
# host knows.
_kprof_words() {
  "$1" "$2" --help 2>/dev/null </dev/null | sed -nE "s/^(usage:|      ) kprof $2 //p" | cut -d' ' -f"$3" |
    grep -xE '[a-z|]+|\[?NODE\]?[.]*' | tr '|' '\n' | sort -u | while read -r word; do
      case $word in *NODE*) _kprof_nodes "$1" ;; *) echo "$word" ;; esac
    done
}
_kprof_nodes() { "$1" nodes --json 2>/dev/null </dev/null | grep -oE '"node":"[^"]*"' | cut -d'"' -f4; }

_kprof() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} option value whole names=() typed=()
  local ask=("${COMP_WORDS[0]/#\~/$HOME}")
  # --db=FILE comes as three words
  if [ "$word" = = ]; then word=''; elif [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  COMPREPLY=()
  if [ "${ask[0]##*/}" = kprof ]; then
    if [ "$COMP_CWORD" -eq 1 ]; then
      mapfile -t COMPREPLY < <(compgen -W "$(_kprof_commands "${ask[0]}") --help --version" -- "$word")
      return
    fi
    ask+=("${COMP_WORDS[1]}")
  fi
  while read -r option value; do
    names+=("$option")
    [ "$option" = "$before" ] || continue
    case $value in
      '') ;;
      FILE) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
      NAME) [ "$option" != --node ] || mapfile -t COMPREPLY < <(compgen -W "$(_kprof_nodes "${ask[0]}")" -- "$word"); return ;;
      DIR) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
      *) return ;; # a value that nobody can guess
    esac
  done < <(_kprof_options "${ask[@]}")
  if [ "${word:0:1}" = - ]; then
    mapfile -t COMPREPLY < <(compgen -W "${names[*]} --help" -- "$word")
    return
  fi
  if [ "${#ask[@]}" -gt 1 ]; then
    # bash takes name@host for three words
    read -ra typed <<<"${COMP_LINE:0:COMP_POINT}"
    case $COMP_LINE in *' ') typed+=('') ;; esac
    whole=${typed[-1]}
    mapfile -t COMPREPLY < <(compgen -W "$(_kprof_words "${ask[@]}" $((${#typed[@]} - 2)))" -- "$whole")
    case $COMP_WORDBREAKS$whole in *@*@*) COMPREPLY=("${COMPREPLY[@]#"${whole%@*}@"}") ;; esac
  fi
  if [ "${#COMPREPLY[@]}" -eq 0 ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}

complete -F _kprof kprof kprof-collector start_kprof_node.sh stop_kprof_node.sh
