# bash completion of kprof, kprof-collector and the scripts of the kprof node. It knows nothing itself: it asks the program for
# its --help, so that every command and option of the installed release is offered.

_kprof_commands() { "$1" --help 2>/dev/null </dev/null | sed -nE 's/^  ([a-z][a-z0-9-]*)  .*/\1/p'; }

# _kprof_options PROGRAM [COMMAND]: a line for each option, "--name VALUE"; without VALUE when it takes none.
_kprof_options() {
  "$@" --help 2>/dev/null </dev/null | sed -nE 's/^ +(-[a-z], )?(--[a-z][a-z0-9-]*)([ =](\[?[A-Z][^ ]*))?.*/\2 \4/p'
}

_kprof() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} option value names=()
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
      DIR) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
      *) return ;; # a value that nobody can guess
    esac
  done < <(_kprof_options "${ask[@]}")
  if [ "${word:0:1}" = - ]; then
    mapfile -t COMPREPLY < <(compgen -W "${names[*]} --help" -- "$word")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}

complete -F _kprof kprof kprof-collector start_kprof_node.sh stop_kprof_node.sh
