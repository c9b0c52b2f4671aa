#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the collector runs as the manifests in scripts/kubernetes have it run, with their own arguments: as a user without any
# rights, on a root file system that cannot be written, with keys that the group may read. It writes nowhere but where --db says, and ends
# on TERM in time, also while the engine that it exports to is away.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then
  echo "skipped: a container of our own takes root and a mount namespace"
  exit 77
fi
user=10001
chmod 711 "$scratch"
mkdir "$scratch/bin"
install -m 755 "$collector" "$scratch/bin"
mkdir -m 750 "$scratch/keys"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
  -keyout "$scratch/keys/tls.key" -out "$scratch/keys/tls.crt" 2>/dev/null
openssl rand -hex 32 >"$scratch/keys/secret"
echo hush >"$scratch/keys/export-password"
chgrp -R $user "$scratch/keys"
chmod 440 "$scratch"/keys/*

# contained DATA COMMAND...: all is read-only but for DATA.
contained=$scratch/bin/contained
cat >"$contained" <<END
#!/usr/bin/env bash
exec unshare --mount bash -c 'mount --make-rprivate / && mount --bind "\$1" "\$1" && mount -o remount,ro,bind / || exit 99
  exec setpriv --reuid $user --regid $user --clear-groups --no-new-privs --inh-caps -all --bounding-set -all "\${@:2}"' bash "\$@"
END
chmod 755 "$contained"
is "$("$contained" "$scratch/keys" sh -c 'id -u; touch /var/x 2>/dev/null || echo read-only')" $'10001\nread-only' "the container is one"

for manifest in collector sidecar daemonset; do
  data=$scratch/$manifest
  mkdir -m 700 "$data"
  chown $user:$user "$data"
  file=$top/scripts/kubernetes/$manifest.yaml
  mapfile -t arguments < <(sed -n "s/^ *- \(--[a-z-]*=.*\)/\1/p" "$file" |
    sed "s#/var/lib/kprof#$data#; s#/etc/kprof#$scratch/keys#; s#:4711#:0#; s#clickhouse.example#localhost:1#; s#\$([A-Z_]*)#a#g")
  has "$file" 'readOnlyRootFilesystem: true' "$manifest: its root file system is read-only"
  collector_log=$scratch/$manifest.log
  start "$collector_log" "$contained" "$data" "$scratch/bin/kprof-collector" "${arguments[@]}"
  collector_pid=$!
  wait_for 20 "the collector of $manifest listens" listens_or_ended
  listens || fail "it did not start"
  has "$collector_log" "writing to $data/kprof.db" "it says where its database is"
  is "$(stat -c '%u %a' "$data/kprof.db")" "$user 600" "which is there, and nobody else's"
  takes_nothing() { grep -q 'export: localhost:1/kprof takes nothing' "$collector_log"; }
  wait_for 20 "the engine is away" takes_nothing
  is "$(awk '/^CapEff|^NoNewPrivs/ { print $2 }' "/proc/$collector_pid/status" | tr '\n' ' ')" "0000000000000000 1 " "it has no rights"
  grace=$(sed -n 's/.*terminationGracePeriodSeconds: //p' "$file")
  began=$SECONDS
  kill -TERM "$collector_pid"
  ends "$collector_pid" "$grace"
  is "$status" 0 "it ends with 0 on TERM"
  holds $((SECONDS - began)) -lt "$grace" "in time"
  is "$(find "$data" -name 'kprof.db-*')" "" "and leaves the database whole"
done
