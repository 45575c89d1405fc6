# SPDX-License-Identifier: BSD-3-Clause
# full_lib.sh - on top of api_lib.sh for tests of a target whose disk is full; bash, in a mount namespace.
#
#   start_on_disk KIND BYTES  keys, repld serve on a disk of its own (tmpfs, ext4, xfs), $pools; api_shell
#   leave BYTES               so much of it is free
#   member_of NAME            of the replica p, as info tells
#   still_a_copy TEXT         for a few tries p stays what it was, and it is told why
#   back TEXT                 p comes back
#   shut_down                 nothing is written to the ext4 or xfs any more, not the journal either, nor read
#   mount_again               it is well again
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -m bash "$0"
fi
. "$(dirname "$0")/api_lib.sh"

pools=$TMP/serve/pools

start_on_disk() {
	make_keys
	make_serve_dir
	case $1 in
	tmpfs)
		mount -t tmpfs -o size="$2",mode=0700,uid="$(id -u "$SERVE_USER")" tmpfs "$pools" || exit 77
		;;
	ext4)
		truncate -s "$2" "$TMP/disk"
		mkfs.ext4 -q -F -b 4096 -m 0 "$TMP/disk" && mount -o loop "$TMP/disk" "$pools" || exit 77
		rmdir "$pools/lost+found"
		chown "$SERVE_USER" "$pools"
		chmod 700 "$pools"
		;;
	xfs)
		truncate -s "$2" "$TMP/disk"
		mkfs.xfs -q "$TMP/disk" && mount -o loop "$TMP/disk" "$pools" || exit 77
		chown "$SERVE_USER" "$pools"
		chmod 700 "$pools"
		;;
	esac
	trap 'code=$?; umount -l "$pools"; (exit $code); cleanup' EXIT
	start_serve
	start_api
}

# At no moment is more of it free than before or behind that: somebody may be waiting for room. A file system needs some
# of it for itself: what can't be allocated at once is written.
leave() {
	local want had

	had=$(stat -c %s "$pools/.filler" 2>/dev/null || echo 0)
	want=$((had + $(df --output=avail -B1 "$pools" | tail -n 1) - $1))
	if [ "$want" -lt "$had" ]; then
		truncate -s "$want" "$pools/.filler" || fail "no filler of $want bytes"
	elif [ "$1" -gt 0 ]; then
		fallocate -l "$want" "$pools/.filler" || fail "no filler of $want bytes"
	else
		dd if=/dev/zero of="$pools/.filler" bs=64k oflag=append conv=notrunc status=none 2>/dev/null
		dd if=/dev/zero of="$pools/.filler" bs=4k oflag=append conv=notrunc status=none 2>/dev/null
		sync -f "$pools"
	fi
}

member_of() {
	ctl --json info "$(pool p)" >"$TMP/info" || fail "info"
	member "$1" <"$TMP/info" 2>/dev/null
}

full() {
	api stat 0
	[[ $TEXT == *"space is left"* || $TEXT == *"are free"* ]]
}

why_full() {
	ctl why "$TMP/local" | grep -q '^reason *target-full:'
}

still_a_copy() {
	for _ in 1 2 3; do
		state=$(member_of state)
		[ "$state" = outdated ] || [ "$state" = unknown ] || fail "$1: $state"
		[ -z "$(member_of journal | grep committed)" ] || fail "$1: stuck with a journal"
		sleep 0.1
	done
	wait_for 10 full || fail "$1: not told: $TEXT"
	wait_for 20 why_full || fail "$1: the reason is not that the disk is full"
}

back() {
	wait_for 20 established 0 || fail "$1: not back: $TEXT"
}

# EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN.
shut_down() {
	python3 -c 'import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack("I", 2))' "$pools" 2>/dev/null || exit 77
}

# On top, so that no pool is made in the directory beneath.
mount_again() {
	local nouuid=

	# The one beneath has the same.
	[ "$(blkid -o value -s TYPE "$TMP/disk")" != xfs ] || nouuid=-onouuid
	# shellcheck disable=SC2086
	dev=$(losetup -f --show "$TMP/disk") && mount $nouuid "$dev" "$pools" || fail "mount"
	losetup -d "$dev" # when it is unmounted
	trap 'code=$?; umount -l "$pools" "$pools"; (exit $code); cleanup' EXIT
}
