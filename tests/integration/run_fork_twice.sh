#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two threads of a program fork at the same time, one of them in a signal handler amid a flush: both go on, and what
# they make durable is on the replica.
. "$(dirname "$0")/run_lib.sh"
start_target
pool=$TMP/twice
(run "$pool" twice timeout -k 5 40 "$BUILD/tests/integration/pmem_forks" "$pool") >"$TMP/out" 2>&1 ||
	fail "the program ends with $?: $(cat "$TMP/out")"
[ ! -s "$TMP/out" ] || fail "it says: $(cat "$TMP/out")"
wait_for 10 pool_idle twice || fail "the session stays"
ctl verify "$pool" "$T/twice" >"$TMP/verify.log" 2>&1 || lost "$(cat "$TMP/verify.log")"
