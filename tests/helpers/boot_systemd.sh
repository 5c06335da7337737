#!/bin/bash
# Boots the systemd of this host in namespaces, as root, over a copy-on-write view of the host's root, and runs a script in it.
#
#     unshare --mount boot_systemd.sh FOLDER
#
# FOLDER has `files`, which are added to the root, and `script`, whose output is in FOLDER/output. It runs in a control
# group of its own, which is removed afterwards, and changes nothing else outside of FOLDER.

set -euo pipefail
readonly folder=$1

if [ "${2-}" != inside ]; then
    # systemd manages all groups beneath the root of its namespace, so that must not be a group with other processes.
    mkdir "$folder/cgroup" "$folder/root"
    mount -t cgroup2 cgroup2 "$folder/cgroup"
    parent=$folder/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
    group=$parent/blksum-test.$$
    mkdir "$group"
    leave() {
        echo $$ > "$parent/cgroup.procs"
        find "$group" -depth -type d -exec rmdir {} +
        umount "$folder/cgroup"
    }
    trap leave EXIT
    echo $$ > "$group/cgroup.procs"
    unshare --mount --cgroup --ipc --uts --net --propagation private "$0" "$folder" inside
    exit
fi

mount -t tmpfs tmpfs "$folder/root"
cd "$folder/root"
mkdir upper work merged
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work merged
cp -a "$folder/files/." merged/
mount --bind "$folder" merged/mnt
cd merged
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount --rbind /dev dev
for place in run tmp dev/shm; do mount -t tmpfs tmpfs "$place"; done
echo 0123456789abcdef0123456789abcdef > etc/machine-id
mkdir -p var/log/journal

cat > etc/systemd/system/script.service <<END
[Unit]
DefaultDependencies=no
Wants=systemd-journald.service
After=systemd-journald.service
[Service]
Type=oneshot
ExecStart=/bin/bash /mnt/script
StandardOutput=file:/mnt/output
StandardError=inherit
ExecStopPost=/bin/systemctl exit --force
TimeoutStartSec=120
END
cat > etc/systemd/system/script.target <<END
[Unit]
DefaultDependencies=no
Requires=script.service
END
# The unit and the timer depend on the targets of the system, which would start its services.
for target in sysinit basic timers; do printf '[Unit]\nDefaultDependencies=no\n' > "etc/systemd/system/$target.target"; done

# systemd cannot make user namespaces in a chroot, so this is none.
mkdir old
pivot_root . old
cd /
umount -l /old
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare --pid --fork --kill-child --mount-proc \
    /lib/systemd/systemd --system --unit=script.target --log-target=console --show-status=false
