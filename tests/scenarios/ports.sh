# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Numbers of ports for those who listen. Sourced, never run.

# free_port: a number that nobody listens on now, and that the kernel gives to nobody while it is not used.
free_port() {
  local port
  while port=$((10000 + RANDOM % 20000)) && listening "$port"; do :; done
  echo "$port"
}
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
