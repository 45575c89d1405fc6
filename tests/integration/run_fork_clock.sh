#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A fork waits for a call that is under way for as long as it does, whatever the time of day is set to.
. "$(dirname "$0")/run_lib.sh"
start_target
pool=$TMP/forks
echo 0 >"$TMP/clock"
(export LD_PRELOAD=$BUILD/tests/integration/wrong_clock.so WRONG_CLOCK=$TMP/clock
ON_LOSS=degrade run "$pool" forks "$BUILD/tests/integration/pmem_write" forks "$pool") >"$TMP/out" 2>&1 &
program=$!
PIDS="$PIDS $program"
wait_for 20 grep -q writes "$TMP/out" || fail "the program: $(cat "$TMP/out")"

# Its calls wait until the loss is noticed.
sessions=$(for pid in $(children "$SERVE_PID"); do children "$pid"; done)
signalled STOP $sessions || fail "no session"
wait "$program"
status=$?
kill -KILL $sessions
[ "$status" -eq 0 ] || fail "no fork has waited for a call: $(cat "$TMP/out")"
