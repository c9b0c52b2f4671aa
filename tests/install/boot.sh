#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# boot.sh FOLDER LAYER: boots systemd on a copy of this machine's own files, with LAYER on top of them, below FOLDER. Nothing is written but
# below FOLDER, where a tmpfs takes it, and no setting of the kernel is touched. Run by systemd.sh in namespaces of its own; becomes PID 1.
set -euo pipefail
folder=$1 layer=$2 root=$1/root

mount --make-rprivate /
mount -t tmpfs tmpfs "$folder"
mkdir "$root" "$folder/upper" "$folder/work"
cp -a "$layer/." "$folder/upper"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for dir in run tmp; do mount -t tmpfs tmpfs "$root/$dir"; done
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"

# Of this machine's services none but the journal.
units=$root/lib/systemd/system
rm -rf "$root"/etc/systemd/system/*.wants "$units"/{sysinit,basic,sockets,timers,local-fs,multi-user,graphical}.target.wants
mkdir "$units/sysinit.target.wants" "$units/sockets.target.wants"
ln -s ../systemd-journald.service "$units/sysinit.target.wants/"
ln -s ../systemd-journald.socket ../systemd-journald-dev-log.socket "$units/sockets.target.wants/"
# No chroot: who is in one can make no user namespace, and the service has one.
cd "$root"
mkdir -p mnt/old
pivot_root . mnt/old
umount -l /mnt/old
mount --make-rshared / # as every container's manager does: credentials are mounted in one namespace for another
exec env -i container=kprof PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --unit=multi-user.target --log-target=journal
