# SPDX-License-Identifier: BSD-3-Clause
# A program that is killed while its set's replica is brought up at the first write, and whose local part is lost
# with it, leaves a replica that pmempool sync restores from: as it was before, or with all that the part had. Also
# where it has parts and a local replica.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/compat_lib.sh"
seed=${API_SEED:-$(($$ % 32768))}
RANDOM=$seed
echo "seed $seed"
start_compat
# So that kills come before its end, however late it is seen that it has begun.
echo "resync-rate = 128M" >>"$TMP/repl.conf"

# random_sleep MOST: milliseconds. (Not in a subshell, which would draw the same number each time.)
random_sleep() {
	local ms

	printf -v ms '0.%03d' $((RANDOM % $1))
	sleep "$ms"
}

idle() {
	! ctl info "$T/$set" | grep -q '^writer .*(has it open)'
}

state() {
	ctl info "$T/$set" | sed -n 's/^state *\([^ ]*\).*/\1/p'
}

# The program's first write is due: it has its lanes.
begins() {
	[ "$(lanes_opened)" -gt "$lanes" ] || gone "$pid"
}

program() {
	REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD \
		"$FILL" "$@" >"$TMP/stream" 2>"$TMP/err" </dev/null &
	pid=$!
	PIDS="$PIDS $pid"
}

killed() {
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	wait_for 20 idle || fail "the session does not end"
}

# Killed at work: the replica is not known to be up to date when it is opened next.
work() {
	: >"$TMP/stream"
	program stream "$TMP/local.set" test 4000
	wait_for 10 test -s "$TMP/stream" || fail "stream: $(cat "$TMP/err")"
	random_sleep 200
	killed
	told=$(tail -n 2 "$TMP/stream" | head -n 1)
	least=${told:-$least}
}

# Bytes of the heap in which there is no object, of nine trials: every page of them differs from the replica.
differ() {
	dd if=/dev/urandom of="$TMP/part0" bs=1M seek=24 count=64 conv=notrunc 2>/dev/null || fail "dd"
}

bytes() {
	dd if="$TMP/part0" bs=1M skip=24 count=64 2>/dev/null | md5sum
}

trial() {
	work
	was=$(bytes)
	differ
	next=$(bytes)
	lanes=$(lanes_opened)
	program check "$TMP/local.set" test
	until begins; do
		:
	done
	random_sleep 400
	killed
	[ "$(lanes_opened)" -gt "$lanes" ] || fail "trial $1: it has ended: $(cat "$TMP/err")"
	rm "$TMP/part0"
	found_state=$(state)
	pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 ||
		lost "trial $1: $found_state, sync: $(cat "$TMP/out" "$TMP/rpmem.log")"
	case $(bytes) in
	"$was") before=$((before + 1)) ;;
	"$next") after=$((after + 1)) ;;
	*) lost "trial $1: what is restored is neither the one nor the other; it was $found_state, of $least objects at least" ;;
	esac
	found=$(walk) || exit 1
	[ "${found%% *}" -ge "$least" ] || lost "trial $1: $least committed, $found are there"
	least=${found%% *}
}

# trials NAME COUNT: so many, and more until one is killed before all is there.
trials() {
	set=$1
	option=$(sed -n '/^OPTION/p' "$POOLS/$set")
	printf '%s\n' PMEMPOOLSET ${option:+"$option"} "96M $TMP/part0" "REPLICA $T $set" >"$TMP/local.set"
	make_pool
	least=0 before=0 after=0
	for ((i = 1; i <= $2 || (before == 0 && i <= 9); i++)); do
		trial "$set $i"
	done
	rm "$TMP/part0"
	echo "$set: as before $before times, with all $after times"
	[ $before -gt 0 ] || fail "$set: no kill came before all was there"
}

target_set one.set "96M one.part"
trials one.set 3
target_set two.set "OPTION SINGLEHDR" "48M two.a" "48M two.b" REPLICA "96M two.copy"
trials two.set 3
cat "$POOLS/two.a" "$POOLS/two.b" | cmp -i 4096 - "$POOLS/two.copy" || lost "the local replica differs"
