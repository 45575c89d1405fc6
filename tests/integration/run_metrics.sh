#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The library's own files are no pool's, whatever their names: no thread of its own waits for a pool because it has renamed
# one, and what a program's file that has taken a pool's name waits for is not done by that.
. "$(dirname "$0")/run_lib.sh"
start_target
ODD=$BUILD/tests/integration/pmem_odd

# measured MODE FILE METRICS: becomes pmem_odd.
measured() {
	exec "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --set on-loss=fail \
		--set "metrics-file=$3" --replica "$T/$1" --pool "$2" -- timeout -k 5 30 "$ODD" "$1" "$2"
}

# Its metrics have the name of the pool's directory, and another program's mark has it opened once more when it is closed.
mkdir "$TMP/orders" "$TMP/metrics"
pool=$TMP/orders/pool
(measured holds "$pool" "$TMP/metrics/orders") >"$TMP/out" 2>&1 &
program=$!
PIDS="$PIDS $program"
wait_for 10 grep -q holds "$TMP/out" || fail "holds: $(cat "$TMP/out")"
: >"$pool.repl-missed"
: >"$pool.enough"
wait $program || fail "holds ends with $?: $(cat "$TMP/out")"
[ ! -e "$pool.repl-missed" ] && [ ! -e "$pool.repl-taken" ] || fail "the mark stays"

# The number by which they were written is the program's own when it has that.
(METRICS=$TMP/metrics/scrapes measured scrapes "$TMP/scrapes" "$TMP/metrics/scrapes") >"$TMP/out" 2>&1 ||
	fail "scrapes ends with $?: $(cat "$TMP/out")"

(METRICS=$TMP/metrics/crowds measured crowds "$TMP/crowds" "$TMP/metrics/crowds") >"$TMP/out" 2>&1 ||
	fail "crowds ends with $?: $(cat "$TMP/out")"
grep -q "/crowds: .* is followed now" "$TMP/out" && ! grep -q amid "$TMP/out" || fail "crowds says: $(cat "$TMP/out")"
wait_for 10 pool_idle crowds || fail "crowds is still open"
ctl verify "$TMP/crowds" "$T/crowds" >"$TMP/verify.log" 2>&1 || lost "crowds: $(cat "$TMP/verify.log" "$TMP/out")"
