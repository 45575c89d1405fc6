#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Who had the pool open is killed before it has served what others wait for, or is told that a replica is lost: nobody
# is told that bytes are durable which the replica lacks. And processes end though signal handlers write meanwhile.
. "$(dirname "$0")/run_lib.sh"
start_target

odd lingers
# In a child that exits the leak sanitizer looks for threads that are its parent's.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
odd alarmed

# number FILE: its first 8 bytes.
number() {
	od -An -t u8 -N 8 "$1" | tr -d ' '
}
counted() {
	[ "$(number "$TMP/counts.count")" -gt "$1" ]
}
(run "$TMP/counts" counts setsid -w "$BUILD/tests/integration/pmem_odd" counts "$TMP/counts") >"$TMP/out" 2>&1 &
wait_for 10 counted 100 || fail "it does not count: $(cat "$TMP/out")"
sessions=$(children "$SERVE_PID")
signalled KILL "$SERVE_PID"
for session in $sessions; do
	kill -KILL $(children "$session") "$session" 2>/dev/null
done
wait
replica=$(number "$TMP/serve/pools/counts")
counted "$replica" && fail "it was told of $(number "$TMP/counts.count"), the replica has $replica"
exit 0
