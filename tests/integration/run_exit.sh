#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Exit compares no pool once more for each of its handlers, nor each time that a thread goes on meanwhile.
. "$(dirname "$0")/run_lib.sh"
start_target

# opened MODE MOST: pmem_odd, which asks for 4 lanes and verify for one, has opened the pool so many times.
before=0
opened() {
	all=$(grep -c " 4 lanes open on" "$TMP/serve.log")
	[ $((all - before)) -le "$2" ] || fail "$1 opens the pool $((all - before)) times"
	before=$all
}
odd atexit
opened atexit 1

# Who persists behind the end opens it, once: the bytes that were under way may be on one side only.
for i in 1 2 3 4; do
	(run "$TMP/lives" lives timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" lives "$TMP/lives") >"$TMP/out" 2>&1 ||
		fail "lives ends with $?: $(cat "$TMP/out")"
	wait_for 10 pool_idle lives || fail "lives is still open"
	opened lives 2
done
