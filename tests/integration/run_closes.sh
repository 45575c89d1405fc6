#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that closes descriptors which it has not opened keeps its replica, and its own files are its own. A command
# that it executes has none of the replicas'.
. "$(dirname "$0")/run_lib.sh"
CLOSES=$BUILD/tests/integration/pmem_closes
start_target

for how in loop all listed range from onto exec; do
	mkdir "$TMP/$how.d"
	(run "$TMP/$how" "$how" timeout -k 5 40 "$CLOSES" "$how" "$TMP/$how" "$TMP/$how.d") \
		>"$TMP/out" 2>&1 || fail "$how ends with $?: $(cat "$TMP/out")"
	[ ! -s "$TMP/out" ] || fail "$how says: $(cat "$TMP/out")"
	wait_for 10 pool_idle "$how" || fail "$how is still open"
	ctl verify "$TMP/$how" "$T/$how" >"$TMP/verify.log" 2>&1 || lost "$how: $(cat "$TMP/verify.log")"
done

# Nor does it get one of theirs that has only just been opened.
(run "$TMP/onto_new" onto_new timeout -k 5 40 "$BUILD/tests/integration/pmem_onto" "$TMP/onto_new") >"$TMP/out" 2>&1 ||
	fail "onto_new ends with $?: $(cat "$TMP/out")"
[ ! -s "$TMP/out" ] || fail "onto_new says: $(cat "$TMP/out")"

# Nor what the kernel has handed to one of their libraries, which closes no file of the program's in its place.
(run "$TMP/handed" handed timeout -k 5 40 "$BUILD/tests/integration/pmem_handed" "$TMP/handed" \
	"$BUILD/tests/integration/libibverbs.so") >"$TMP/out" 2>&1 || fail "handed ends with $?: $(cat "$TMP/out")"
[ ! -s "$TMP/out" ] || fail "handed says: $(cat "$TMP/out")"

# What nobody sees loses the replica, but the program ends, by itself.
mkdir "$TMP/call.d"
(ON_LOSS=degrade run "$TMP/call" call timeout -k 5 40 "$CLOSES" call "$TMP/call" "$TMP/call.d") >"$TMP/out" 2>&1
status=$?
[ $status -lt 124 ] || fail "call ends with $status: $(cat "$TMP/out")"
grep -q "call: REPLICA .* LOST: " "$TMP/out" || fail "no loss is told: $(cat "$TMP/out")"
