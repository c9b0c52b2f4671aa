# SPDX-License-Identifier: Apache-2.0
# fish completion of kprof, kprof-collector and the scripts of the kprof node. It knows nothing itself: it asks the program for its
# --help, so that every command and option of the installed release is offered.

# A line for each option of the program or command on the command line: --name, VALUE (or nothing) and what is said of it, between tabs
function __kprof_options
    $argv --help 2>/dev/null </dev/null | sed -nE 's/^ +(-[a-z], )?(--[a-z][a-z0-9-]*)([ =](\[?[A-Z][^ ]*))? *(.*)/\2\t\4\t\5/p'
end

# What may stand as the Nth word of a command, as its usage says: words, or names of nodes that the collector on this host knows.
function __kprof_words # program command N
    for word in ($argv[1..2] --help 2>/dev/null </dev/null | sed -nE "s/^(usage:|      ) kprof $argv[2] //p" | cut -d' ' -f$argv[3] |
        grep -xE '[a-z|]+|\[?NODE\]?[.]*' | tr '|' '\n' | sort -u)
        if string match -q '*NODE*' -- $word
            __kprof_nodes $argv[1]
        else
            echo $word
        end
    end
end

function __kprof_nodes # program
    $argv[1] nodes --json 2>/dev/null </dev/null | grep -oE '"node":"[^"]*"' | cut -d'"' -f4
end

function __kprof_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l ask (string replace -r '^~/' "$HOME/" -- $words[1])
    if string match -qr '(^|/)kprof$' -- $words[1]
        if test (count $words) -eq 1
            $ask --help 2>/dev/null </dev/null | sed -nE 's/^  ([a-z][a-z0-9-]*)  +(.*)/\1\t\2/p'
            printf '%s\t%s\n' --help 'list the commands' --version 'tell the version'
            return
        end
        set -a ask $words[2]
    end
    set -l lines (__kprof_options $ask)
    for line in $lines
        set -l parts (string split \t -- $line)
        if test "$parts[1]" = "$words[-1]"
            switch "$parts[2]"
                case ''
                    break
                case FILE
                    __fish_complete_path $word
                    return
                case DIR
                    __fish_complete_directories $word ''
                    return
                case '*'
                    test "$parts[1]" = --node; and __kprof_nodes $ask[1]
                    return
            end
        end
    end
    if string match -q -- '-*' $word
        for line in $lines
            set -l parts (string split \t -- $line)
            printf '%s\t%s\n' $parts[1] $parts[3]
        end
        printf '%s\t%s\n' --help 'tell more'
        return
    end
    set -l offered
    if test (count $ask) -gt 1
        set offered (__kprof_words $ask (math (count $words) - 1))
    end
    if test (count $offered) -gt 0
        printf '%s\n' $offered
    else
        __fish_complete_path $word
    end
end

for program in kprof kprof-collector start_kprof_node.sh stop_kprof_node.sh
    complete -c $program -f -a '(__kprof_complete)'
end
