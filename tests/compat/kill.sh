# SPDX-License-Identifier: BSD-3-Clause
# After SIGKILL of its program and the loss of the local part, all that was committed is in the replica.
# usage: kill.sh FORCE FIRST COUNT: PMEM_IS_PMEM_FORCE=FORCE; trials of that number on
. "$(dirname "$0")/compat_lib.sh"
force=$1
first=$2
count=$3
PMEM_IS_PMEM_FORCE=$force
export PMEM_IS_PMEM_FORCE
size=$((16 + 2 * count))M
start_compat
target_set rem.set "$size rem.part"
printf 'PMEMPOOLSET\n%s %s\nREPLICA %s rem.set\n' "$size" "$TMP/part0" "$T" >"$TMP/local.set"
make_pool
RANDOM=$first

idle() {
	! ctl info "$T/rem.set" | grep -q '^writer .*(has it open)'
}

# Every fourth one is hit while it opens the pool, or at any time; the others between two commits.
trial() {
	delay=0.$((RANDOM % 3))$((RANDOM % 10))
	: >"$TMP/stream"
	REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD \
		"$FILL" stream "$TMP/local.set" test 4000 >"$TMP/stream" 2>"$TMP/err" </dev/null &
	pid=$!
	PIDS="$PIDS $pid"
	[ $(($1 % 4)) -eq 0 ] || wait_for 10 test -s "$TMP/stream" || fail "stream: $(cat "$TMP/err")"
	sleep "$delay"
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	# The last line may be cut; what was printed before it was committed.
	told=$(tail -n 2 "$TMP/stream" | head -n 1)
	wait_for 15 idle || fail "trial $1: its session does not end"
	rm "$TMP/part0"
	pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || lost "trial $1: sync: $(cat "$TMP/out")"
	found=$(walk) || exit 1
	[ "${found%% *}" -ge "${told:-0}" ] || lost "trial $1: $told committed, $found are there"
	[ "${found%% *}" -ge "$least" ] || lost "trial $1: $least before, $found now"
	least=${found%% *}
}

least=0
i=$first
while [ "$i" -lt $((first + count)) ]; do
	trial "$i"
	i=$((i + 1))
done
[ "$least" -gt 0 ] || fail "nothing was ever committed"
printf 'PMEMPOOLSET\n%s %s\n' "$size" "$TMP/part0" >"$TMP/alone.set"
pmdk pmempool transform "$TMP/local.set" "$TMP/alone.set" >"$TMP/out" 2>&1 ||
	fail "transform: $(cat "$TMP/out")"
pmdk pmempool check "$TMP/alone.set" >"$TMP/out" 2>&1 || lost "check: $(cat "$TMP/out")"
