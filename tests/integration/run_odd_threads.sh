#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Whatever a program does to its threads, signals, processes and descriptors, it ends and its replica has what was persisted.
. "$(dirname "$0")/run_lib.sh"
ODD=$BUILD/tests/integration/pmem_odd
start_target

for mode in daemon forks cancel handler amid jumps ticks forkticks closed; do
	odd "$mode"
done

# What the sanitizers have of addresses is more than any limit.
sanitized || odd limited

# The byte that was under way may be on one side only.
for i in 1 2 3; do
	(run "$TMP/exit" exit timeout -k 5 20 "$ODD" exit "$TMP/exit") >"$TMP/out" 2>&1 ||
		fail "exit in a handler ends with $?: $(cat "$TMP/out")"
	wait_for 10 pool_idle exit || fail "exit: the session stays"
done

# What there is to tell does not go into the pool.
free=$(free_port)
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --pool "$TMP/stderr" \
	--replica "nobody@127.0.0.1:$free/stderr" -- "$ODD" stderr "$TMP/stderr" >"$TMP/out" 2>&1 ||
	fail "stderr: $(cat "$TMP/out")"
! grep -q "librepl" "$TMP/stderr" || fail "a text stands in the pool"
