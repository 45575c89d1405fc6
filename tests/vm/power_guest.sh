#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In a guest of power.sh: a target whose pools are on a disk, until the power is cut.
# usage: power_guest.sh SHARED [NOSYNC-LIBRARY]
here=$(cd "$(dirname "$0")" && pwd)
. "$here/guest_lib.sh"
shared=$1
ip addr add 10.0.2.15/24 dev eth0 && ip link set eth0 up || fail "no network"
if [ -e "$shared/formatted" ]; then
	mkdir -p /srv/power && modprobe ext4 && mount /dev/vda /srv/power || fail "mount"
else
	fs /dev/vda /srv/power ext4
	install -d -o nobody /srv/power/pools
	sync
	touch "$shared/formatted"
fi
install -d -o nobody /run/repld
install -o nobody -m 600 "$shared/host_key" "$shared/authorized_keys" /run/repld
cat >/run/repld/conf <<END
[repld]
pool-dir = /srv/power/pools
listen = 10.0.2.15:7022
data-ports = 7100-7115
host-key = /run/repld/host_key
authorized-keys = /run/repld/authorized_keys
user = nobody
heartbeat-timeout = 60000
END
if [ -n "${2-}" ]; then
	export LD_PRELOAD=$2 NOSYNC=$shared/drop
fi
"$BUILD/repld" serve --config /run/repld/conf >"$shared/serve.log" 2>&1 &
until grep -q "listening on" "$shared/serve.log"; do
	kill -0 $! 2>/dev/null || fail "repld: $(cat "$shared/serve.log")"
	sleep 0.1
done
touch "$shared/up"
wait
