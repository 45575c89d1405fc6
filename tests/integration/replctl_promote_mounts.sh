#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A forced promotion ends the pool's own writer: none whose sidecar has the same number on another file system that is
# mounted in the pool directory, or in another subvolume.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || { echo "skipped: no mount namespace"; exit 77; }
	INSIDE=1 exec unshare -m bash "$0"
fi
. "$(dirname "$0")/lib.sh"
start_target
POOLS=$TMP/serve/pools
HELD=
trap '(status=$?; umount -l "$POOLS/tmpfs/a" "$POOLS/tmpfs/b" "$POOLS/btrfs" 2>/dev/null; exit $status); cleanup' EXIT

# session POOL: the process that has it open for writing.
session() {
	ctl status --json "$T" | python3 -c 'import json, sys
for s in json.load(sys.stdin)["sessions"]:
    if s.get("pool") == sys.argv[1] and s.get("mode") == "write": print(s["pid"])' "$1"
}

has_session() {
	[ -n "$(session "$1")" ]
}

writer() {
	# What the one before has said is not for hold() to read.
	rm -f "$TMP/hold.out"
	hold "$1" write
	HELD="$HELD $HOLD_PID"
	wait_for 20 has_session "$1" || fail "no session of $1 is told of"
}

# twins DIRECTORY: pools a/p and b/q there, whose sidecars have one number.
twins() {
	mkdir -p "$POOLS/$1"
	for pool in a/p b/q; do
		head -c 1048576 /dev/urandom >"$TMP/local"
		rm -f "$TMP/local.repl"
		ctl sync "$TMP/local" "$T/$1/$pool" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
	done
	[ "$(stat -c %i "$POOLS/$1/a/p.repl")" = "$(stat -c %i "$POOLS/$1/b/q.repl")" ] || fail "sidecars differ in number"
}

# A lock that no session has: nobody is ended. Then the pool's writer, and nobody else.
promotes() {
	writer "$1/b/q"
	bystander=$(session "$1/b/q")
	(exec 5<"$POOLS/$1/a/p.repl" && flock 5 && exec sleep 60) &
	holder=$!
	PIDS="$PIDS $holder"
	locked() {
		! flock -n "$POOLS/$1/a/p.repl" true
	}
	wait_for 20 locked "$1" || fail "no lock"
	ctl_fails 4 "by no session of repld" promote --force "$T/$1/a/p"
	gone "$bystander" && lost "$1: the session of another pool was ended"
	stop "$holder"
	writer "$1/a/p"
	pid=$(session "$1/a/p")
	ctl promote --force "$T/$1/a/p" >"$TMP/out" 2>&1 || fail "$1: promote: $(cat "$TMP/out")"
	gone "$pid" || fail "$1: the writer lives"
	gone "$bystander" && lost "$1: the session of another pool was ended"
	for pid in $HELD; do
		stop "$pid"
	done
	HELD=
}

for dir in a b; do
	mkdir -p "$POOLS/tmpfs/$dir"
	mount -t tmpfs -o mode=700,uid="$(id -u "$SERVE_USER")" none "$POOLS/tmpfs/$dir" || fail "mount"
done
twins tmpfs
promotes tmpfs

# Subvolumes, as mkfs.btrfs is not told to make them.
truncate -s 128M "$TMP/image"
mkdir "$POOLS/btrfs"
mkfs.btrfs -q "$TMP/image" >"$TMP/mkfs.out" 2>&1 && mount -o loop "$TMP/image" "$POOLS/btrfs" 2>>"$TMP/mkfs.out" || {
	left_out "subvolumes: $(tail -n 1 "$TMP/mkfs.out")"
	exit
}
python3 -c '
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for name in b"a", b"b":
    fcntl.ioctl(fd, 0x5000940e, bytearray(struct.pack("=q4088s", 0, name)))
' "$POOLS/btrfs" || fail "subvolumes"
chown "$SERVE_USER" "$POOLS/btrfs" "$POOLS/btrfs/a" "$POOLS/btrfs/b"
twins btrfs
promotes btrfs
