#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes that come of one another write to one pool: whichever of them has it open, what any has made durable is on
# the replica when its call returns, though it, or who serves it, is killed right then.
. "$(dirname "$0")/run_lib.sh"
start_target

for mode in kin heirs adrift_kin beyond_kin anew_kin; do
	odd $mode
done
REPLICA=$TMP/serve/pools/opening odd opening
for mode in apart renewed cutaway_kin; do
	odd $mode "^[^:]*: [^ ]*/$mode: it was made shorter [^:]*$"
done
odd supplanted '^[^:]*: [^ ]*/supplanted is another file now: '

# ended MODE: it is killed, and what it has made durable is there.
ended() {
	(run "$TMP/$1" "$1" timeout -k 5 20 setsid "$BUILD/tests/integration/pmem_odd" "$1" "$TMP/$1") >"$TMP/out" 2>&1 &&
		fail "$1 lives: $(cat "$TMP/out")"
	[ "$(grep -v Killed "$TMP/out")" = "" ] || fail "$1 says: $(cat "$TMP/out")"
	wait_for 10 pool_idle "$1" || fail "$1 is still open"
	cmp "$TMP/$1" "$TMP/serve/pools/$1" >&2 || lost "$1 differs: $(cat "$TMP/out")"
}
# In a child that exits the leak sanitizer looks for threads that are its parent's.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
for mode in strays flushed all; do
	ended $mode
done

# The replica keeps what was behind the new end.
(run "$TMP/cuts" cuts timeout -k 5 20 "$BUILD/tests/integration/pmem_odd" cuts "$TMP/cuts") >"$TMP/out" 2>&1
rc=$?
[ $rc = 137 ] && grep -q "it was made shorter than" "$TMP/out" || fail "cuts ends with $rc: $(cat "$TMP/out")"
cmp -n "$(stat -c %s "$TMP/cuts")" "$TMP/cuts" "$TMP/serve/pools/cuts" >&2 || lost "cuts differs"
cmp <(printf 'b%.0s' {1..100}) <(tail -c +524289 "$TMP/serve/pools/cuts" | head -c 100) >&2 || lost "cuts lacks what was flushed"
