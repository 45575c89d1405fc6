# SPDX-License-Identifier: BSD-3-Clause
# A local part that pmempool sync was filling from the replica when that was lost is not called whole by the next sync,
# and no program opens it: the replica would be made equal to it. Also where it is the second one of two, and the first one is whole.
# Nor is one that was not even begun, as where another replica can't be made, and of two it is neither before both are filled.
# Who is not root can't read it, nor open it, until that sync has ended in order.
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set rem.set "160M rem.part"
KEEPS=$BUILD/tests/integration/keeps_synced.so
[ -e "$KEEPS" ] || fail "no $KEEPS"

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
	whole "$@"
}

# whole PART OFFSET: it is when it was synced
whole() {
	pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out" "$TMP/rpmem.log")"
	[ "$(walk)" = "$filled" ] || lost "not what was filled"
	[ "$(piece "$1" "$2")" = "$(cat "$TMP/random")" ] || lost "what is behind that is not the replica's"
}

# begin MIB LINE...: a pool of these; at 9 and at so many MiB of the replicas, in free memory, there is something
begin() {
	printf '%s\n' PMEMPOOLSET "${@:2}" "REPLICA $T rem.set" >"$TMP/local.set"
	make_pool
	filled=$(fill 50) || exit 1
	head -c 65536 /dev/urandom >"$TMP/bytes"
	piece "$TMP/bytes" 0 >"$TMP/random"
	for part in "$POOLS"/*.part; do
		for i in 9 "$1"; do
			dd if="$TMP/bytes" of="$part" bs=1M seek=$i conv=notrunc 2>/dev/null
		done
	done
}

begin 150 "160M $TMP/part0"
rm "$TMP/part0"
sync_cut "$TMP/part0" $((150 << 20))
mended "$TMP/part0" $((150 << 20))

# Of two parts, behind whose second header the rest is.
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
at=$(((150 - 8 << 20) + 4096))
begin 150 "8M $TMP/part0" "151M $TMP/part1"
rm "$TMP/part1"
sync_cut "$TMP/part1" $at
mended "$TMP/part1" $at

# Of both, and it is killed as soon as a power cut would leave the first one's descriptor.
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
target_set rem.set "20M rem.part"
target_set two.set "20M two.part"
at=$(((14 - 8 << 20) + 4096))
begin 14 "8M $TMP/part0" "9M $TMP/part1" "REPLICA $T two.set"
rm "$TMP"/part[01]
SYNCED=$TMP/part0 SYNCED_ENDS=4096 LD_PRELOAD=$KEEPS pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1
[ $? = 137 ] || fail "it is not killed: $(cat "$TMP/out" "$TMP/rpmem.log")"
[ "$(piece "$TMP/part1" $at)" = "$(cat "$TMP/random")" ] || lost "the second part is not there, and passes for whole"
whole "$TMP/part1" $at

# The second one, and another replica that can't be made for want of its set file.
sync_fails() {
	mv "$POOLS/two.set" "$TMP/two.set"
	! pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "a replica is made without a set file"
	mv "$TMP/two.set" "$POOLS/two.set"
}

rm "$TMP/part1"
sync_fails
[ -e "$TMP/part1" ] || fail "it has ended before it made the part: $(cat "$TMP/out" "$TMP/rpmem.log")"
mended "$TMP/part1" $at

# With a part that nobody may open, but that is not new, all stays as it is.
chmod 0 "$TMP/part1"
sync_fails
[ "$(walk)" = "$filled" ] || lost "not what was filled"

# One that is made by the same sync as the part has all of it, too.
rm "$TMP/part1" "$POOLS"/two.part*
ctl remove --force "$T/two.set" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
whole "$TMP/part1" $at
cmp -i 4096 -n 2048 "$POOLS/two.part" "$POOLS/rem.part" >"$TMP/out" 2>&1 || lost "it has no descriptor: $(cat "$TMP/out")"
[ "$(piece "$POOLS/two.part" $((14 << 20)))" = "$(cat "$TMP/random")" ] || lost "it has not what is behind that"

# Two local replicas, both of them, and the part again, which PMDK copies from the other one by itself.
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
begin 14 "8M $TMP/part0" "9M $TMP/part1" REPLICA "20M $TMP/other"
rm "$TMP"/part[01] "$TMP/other"
whole "$TMP/other" $((14 << 20))
rm "$TMP/part1"
whole "$TMP/part1" $at

# Of two parts that have one header, the second one, which is mapped from its first byte on.
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
target_set rem.set "OPTION SINGLEHDR" "20M rem.part"
target_set two.set "OPTION SINGLEHDR" "20M two.part"
at=$((14 - 8 << 20))
begin 14 "OPTION SINGLEHDR" "8M $TMP/part0" "9M $TMP/part1" "REPLICA $T two.set"
rm "$TMP/part1" "$POOLS"/two.part*
ctl remove --force "$T/two.set" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
sync_fails
[ -e "$TMP/part1" ] || fail "it has ended before it made the part: $(cat "$TMP/out" "$TMP/rpmem.log")"
mended "$TMP/part1" $at

# Nor is it whole where the replica, which could be opened before the part was made, can't be behind that.
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
rm "$TMP"/*key*
two_targets
RPMEM_CMD="test ! -e $TMP/away -o ! -e $TMP/part1 && exec $REPLD session --config $TMP/repld1.conf"
T=$at POOLS=$TMP/pools1
target_set rem.set "OPTION SINGLEHDR" "20M rem.part"
at=$((14 - 8 << 20))
begin 14 "OPTION SINGLEHDR" "8M $TMP/part0" "9M $TMP/part1"
rm "$TMP/part1"
touch "$TMP/away"
! pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "it opens what is away"
[ -e "$TMP/part1" ] || fail "it has ended before it made the part: $(cat "$TMP/out" "$TMP/rpmem.log")"
rm "$TMP/away"
mended "$TMP/part1" $at
