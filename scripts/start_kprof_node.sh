#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts the kprof node: loads the shim into a running Erlang node, traces it, and takes everything back on TERM or INT.
set -euo pipefail

usage() {
  cat <<'END'
usage: start_kprof_node.sh --node NAME --cookie-file FILE --config FILE | --entry M:F/A ... [--wait]
                           [--collector HOST:PORT] [--secret-file FILE] [--tls | --tls-ca FILE]
                           [--tls-cert FILE --tls-key FILE] [--tls-name NAME] [--name NAME] [--pid-file FILE]

Loads kprof's shim into the running Erlang node NAME (name@host, as that node calls itself), starts tracing as FILE
says, and watches. When NAME restarts, tracing is started again. Runs in the foreground; on TERM or Ctrl-C (and through
stop_kprof_node.sh) everything is taken back out of NAME, which needs nothing installed but OTP 25 or newer.

  --node NAME            the target node
  --cookie-file FILE     a file with its cookie; the cookie never stands on a command line
  --config FILE          the options of kprof:start_trace/1 as Erlang terms: each one, or one list of all, ended by a
                         full stop. Funs are allowed; they are evaluated on the target
  --entry M:F/A          each call of this function is a request; the application need not say anything of kprof. May be
                         given several times, and beside --config
  --wait                 the functions of --entry need not be there yet: they are traced once they are loaded
  --collector HOST:PORT  where the collector listens, as seen from the target (overrides the file)
  --secret-file FILE     the secret that the collector was given too (overrides the file)
  --tls                  through TLS; the collector's certificate is verified with the target system's authorities
  --tls-ca FILE          through TLS; it is verified with the authorities in FILE
  --tls-cert FILE        the target's own certificate, for a collector with --tls-ca,
  --tls-key FILE           and its key
  --tls-name NAME        the name in the collector's certificate (default: the host of --collector)
  --name NAME            this node's own name, without @host (default: a new one each time)
  --pid-file FILE        default: kprof-node-TARGET.pid in $XDG_RUNTIME_DIR or $TMPDIR or /tmp

KPROF_EBIN names the folder with the shim's compiled modules; default: share/kprof/ebin where kprof is installed, and
build/shim/default/lib/kprof/ebin in its source folder.
FILEs are read here; what is in them travels to the target over Erlang's distribution.

exit status
  0 stopped as told        4 wrong cookie                       7 the shim is not built or cannot be loaded
  1 something else         5 the target's OTP is older than 25  8 the collector is not there, or no trace port
  2 wrong usage            6 the configuration, secret or TLS   9 traced already
  3 the target is not up     files
END
}

die() { echo "start_kprof_node: $2" >&2; exit "$1"; }

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
node='' cookie='' config='' entries='' await='' collector='' name='' pidfile='' secret=''
tls='' tls_ca='' tls_cert='' tls_key='' tls_name=''
while [ $# -gt 0 ]; do
  case $1 in
    --help|-h) usage; exit 0 ;;
    --tls) tls=yes; shift ;;
    --wait) await=yes; shift ;;
    --node|--cookie-file|--config|--entry|--collector|--name|--pid-file|--secret-file|--tls-ca|--tls-cert|--tls-key|--tls-name)
      [ $# -ge 2 ] || die 2 "$1 wants a value (--help tells more)"
      case $1 in
        --node) node=$2 ;;
        --cookie-file) cookie=$2 ;;
        --config) config=$2 ;;
        --entry) entries+=$2$'\n' ;;
        --collector) collector=$2 ;;
        --name) name=$2 ;;
        --pid-file) pidfile=$2 ;;
        --secret-file) secret=$2 ;;
        --tls-ca) tls_ca=$2 tls=yes ;;
        --tls-cert) tls_cert=$2 ;;
        --tls-key) tls_key=$2 ;;
        --tls-name) tls_name=$2 ;;
      esac
      shift 2 ;;
    *) die 2 "unknown option $1 (--help tells more)" ;;
  esac
done
[ -n "$node" ] || die 2 "--node is missing (--help tells more)"
[ -n "$cookie" ] || die 2 "--cookie-file is missing (--help tells more)"
[ -n "$config$entries" ] || die 2 "--config or --entry is missing (--help tells more)"
[[ $node =~ ^[^@[:space:]]+@[^@[:space:]]+$ ]] || die 2 "--node wants name@host, not $node"
[[ -z $collector || $collector =~ ^.+:[0-9]+$ ]] || die 2 "--collector wants HOST:PORT, not $collector"
[[ -z $name || $name =~ ^[A-Za-z0-9_.-]+$ ]] || die 2 "--name wants a name without @host, not $name"
[[ -n $tls || -z $tls_cert$tls_key$tls_name ]] || die 2 "--tls-cert, --tls-key and --tls-name go with --tls or --tls-ca"
readable() { [ -f "$1" ] && [ -r "$1" ]; }
readable "$cookie" || die 2 "cannot read the cookie file $cookie"
[ -z "$config" ] || readable "$config" || die 6 "cannot read the configuration file $config"
for file in "$secret" "$tls_ca" "$tls_cert" "$tls_key"; do
  [ -z "$file" ] || readable "$file" || die 6 "cannot read $file"
done
command -v erl >/dev/null || die 1 "there is no erl on the PATH: install Erlang/OTP 25 or newer"

ebin=${KPROF_EBIN:-}
if [ -z "$ebin" ]; then
  ebin=$here/../share/kprof/ebin
  [ -d "$ebin" ] || ebin=$here/../build/shim/default/lib/kprof/ebin
fi
[ -f "$ebin/kprof.app" ] || die 7 "the shim is not built: no kprof.app in $ebin (build kprof, or set KPROF_EBIN)"

run=${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}
[ -n "$pidfile" ] || pidfile=$run/kprof-node-${node//\//_}.pid
if [ -O "$pidfile" ] && pid=$(cat "$pidfile" 2>/dev/null) && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; then
  die 9 "a kprof node for $node runs already, process $pid (stop_kprof_node.sh --node $node ends it)"
fi

# Erlang reads the cookie from its home folder, so it gets one with nothing else in it.
home=$(mktemp -d "${TMPDIR:-/tmp}/kprof-node.XXXXXX")
erl_pid=
# shellcheck disable=SC2317  # called by the trap
cleanup() { rm -rf "$home"; if [ "$(cat "$pidfile" 2>/dev/null)" = "$erl_pid" ]; then rm -f "$pidfile"; fi; }
trap cleanup EXIT
(umask 077; tr -d '\r\n' <"$cookie" >"$home/.erlang.cookie")
chmod 400 "$home/.erlang.cookie"

export KPROF_TARGET=$node KPROF_CONFIG=$config KPROF_ENTRIES=$entries KPROF_WAIT=$await KPROF_EBIN=$ebin \
  KPROF_COLLECTOR=$collector KPROF_PARENT=$$
export KPROF_SECRET_FILE=$secret KPROF_TLS=$tls KPROF_TLS_CA=$tls_ca KPROF_TLS_CERT=$tls_cert KPROF_TLS_KEY=$tls_key \
  KPROF_TLS_NAME=$tls_name
export KPROF_OWN_NAME=${name:-kprof_$$_$RANDOM}
told=
trap 'told=1; [ -z "$erl_pid" ] || kill -TERM "$erl_pid" 2>/dev/null || true' TERM INT HUP
# +Bi: Ctrl-C reaches the whole process group, and is this script's to answer
HOME=$home erl +Bi -noshell -noinput -boot start_clean -pa "$ebin" -run kprof_node main </dev/null &
erl_pid=$!
echo "$erl_pid" >"$pidfile"
[ -z "$told" ] || kill -TERM "$erl_pid"

# A trapped signal ends wait early: wait again until the node itself has ended. Erlang forgets a TERM that reaches it while it
# boots, so it is told again; told twice it does no more than once.
status=
while [ -z "$status" ]; do
  if [ -n "$told" ] && kill -TERM "$erl_pid" 2>/dev/null; then
    sleep 1
  else
    wait "$erl_pid" && ended=0 || ended=$?
    kill -0 "$erl_pid" 2>/dev/null || status=$ended
  fi
done
exit "$status"
