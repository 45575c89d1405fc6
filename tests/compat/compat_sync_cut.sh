# SPDX-License-Identifier: BSD-3-Clause
# A local part that pmempool sync was filling from the replica when that was lost is not called whole by the next sync,
# and no program opens it: the replica would be made equal to it. Also where it is the second one of two, and the first one is whole.
# Who is not root can't read it, nor open it, until that sync has ended in order.
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set rem.set "160M rem.part"

# Behind the header and the pool's descriptor.
copying() {
	gone "$pid" || tail -c +8193 "$1" 2>/dev/null | head -c 4M | tr -d '\0' | read -rn 1
}

# sync_cut PART OFFSET: its replica is lost while that is filled, and before what is there has come
sync_cut() {
	REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 </dev/null &
	pid=$!
	PIDS="$PIDS $pid"
	until copying "$1"; do
		:
	done
	kill -STOP "$pid" || fail "sync: $(cat "$TMP/out")"
	sessions_kill
	kill -CONT "$pid"
	! wait "$pid" || fail "sync says that it is done: $(cat "$TMP/rpmem.log")"
	! piece "$1" "$2" | grep -q '[^0 ]' || fail "it was not cut off before its end"
}

# piece FILE OFFSET: 64 KiB there
piece() {
	dd if="$1" iflag=skip_bytes,count_bytes skip="$2" count=65536 2>/dev/null | od -An -v -tx1
}

# mended PART OFFSET: no program overwrites the replica with it, and the next sync makes it anew
mended() {
	! pmdk "$FILL" check "$TMP/local.set" test >"$TMP/out" 2>&1 || lost "a program opens what was cut off"
	pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out" "$TMP/rpmem.log")"
	[ "$(walk)" = "$filled" ] || lost "not what was filled"
	[ "$(piece "$1" "$2")" = "$(cat "$TMP/random")" ] || lost "what is behind that is not the replica's"
}

# begin LINE...: a pool in these local parts; at 9 and at 150 MiB of the replica, in free memory, there is something
begin() {
	printf '%s\n' PMEMPOOLSET "$@" "REPLICA $T rem.set" >"$TMP/local.set"
	make_pool
	filled=$(fill 50) || exit 1
	for i in 9 150; do
		head -c 65536 /dev/urandom | dd of="$POOLS/rem.part" bs=1M seek=$i conv=notrunc 2>/dev/null
	done
	piece "$POOLS/rem.part" $((150 << 20)) >"$TMP/random"
}

begin "160M $TMP/part0"
rm "$TMP/part0"
sync_cut "$TMP/part0" $((150 << 20))
mended "$TMP/part0" $((150 << 20))

# Of two parts, behind whose second header the rest is.
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
at=$(((150 - 8 << 20) + 4096))
begin "8M $TMP/part0" "151M $TMP/part1"
rm "$TMP/part1"
sync_cut "$TMP/part1" $at
mended "$TMP/part1" $at
