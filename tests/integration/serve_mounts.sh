#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The service's own view of the file systems follows the machine's where the manual's ReadWritePaths= is used: one that
# has sessions is not unmounted unseen, and what is mounted in its place is what pools are made on.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -m --propagation private bash "$0"
fi
. "$(dirname "$0")/lib.sh"
MANUAL=$(dirname "$0")/../../docs/man/repld.8
DISK=$TMP/serve
trap '(status=$?; umount -l "$DISK" "$TMP/new" 2>/dev/null; exit $status); cleanup' EXIT
mount --make-rshared / || exit 77

# The manual's example has its pools in /mnt/pmem0/pools, on what is mounted as /mnt/pmem0.
grep -q '^# install -d -o repld -m 0700 /mnt/pmem0/pools$' "$MANUAL" || fail "the manual has another pool-dir"
writable=$(sed -n 's/^.*ReadWritePaths=\(.*\)$/\1/p' "$MANUAL")
[ -n "$writable" ] || fail "the manual names no ReadWritePaths="
path=$DISK${writable#/mnt/pmem0}

# As systemd does: a path that is not mounted by itself is bound to itself, in a view that follows the machine's.
{
	printf '#!/bin/sh\n'
	printf 'mountpoint -q "%s" || mount --bind "%s" "%s" || exit 1\n' "$path" "$path" "$path"
	printf 'exec "%s" "$@"\n' "$REPLD"
} >"$TMP/repld.sh"
printf '#!/bin/sh\nexec unshare -m --propagation slave sh "%s" "$@"\n' "$TMP/repld.sh" >"$TMP/repld"
chmod 755 "$TMP/repld"
mkdir "$DISK" "$TMP/new"
mount -t tmpfs -o size=64m old "$DISK" || exit 77
make_keys
REPLD=$TMP/repld
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
ok_create() {
	ctl create "$T/$1" --size 1M >"$TMP/out" 2>&1 || fail "create $1: $(cat "$TMP/out")"
}
ok_create a
[ -e "$DISK/pools/a" ] || fail "a is not on the disk"

# With a session.
hold a write
! umount "$DISK" 2>"$TMP/err" || fail "it is unmounted under a session"
grep -q busy "$TMP/err" || fail "umount: $(cat "$TMP/err")"
stop "$HOLD_PID"

# Without one, and another one in its place.
mount -t tmpfs -o size=64m new "$TMP/new" || exit 77
cp -a "$DISK/host_key" "$DISK/authorized_keys" "$TMP/new"
mkdir "$TMP/new/pools"
chown "$SERVE_USER" "$TMP/new" "$TMP/new/pools"
wait_for 20 umount "$DISK" 2>/dev/null || fail "it can't be unmounted without a session"
mount --bind "$TMP/new" "$DISK"
ok_create b
[ -e "$TMP/new/pools/b" ] || fail "b is on the disk that was unmounted"
