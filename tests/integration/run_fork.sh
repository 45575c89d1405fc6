#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that goes on in a child of its own is replicated again when its parent has ended.
. "$(dirname "$0")/run_lib.sh"
start_target
# In a child that exits its parent's handle is nobody's.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
pool=$TMP/forked
(run "$pool" forked "$BUILD/tests/integration/pmem_write" fork "$pool") >"$TMP/out" 2>&1 ||
	fail "the program: $(cat "$TMP/out")"

# What the child writes comes to the target: one change may be from a resync, further ones are not.
byte() {
	od -An -tx1 -j 65536 -N 1 "$TMP/serve/pools/forked"
}
changed() {
	[ "$(byte)" != "$was" ]
}
for i in 1 2 3; do
	was=$(byte)
	wait_for 50 changed || fail "the child is not replicated: $(cat "$TMP/out")"
done
: >"$pool.enough"
wait_for 40 test -e "$pool.done" || fail "the child does not end: $(cat "$TMP/out")"
wait_for 10 pool_idle forked || fail "the child's session stays"
ctl verify "$pool" "$T/forked" >"$TMP/verify.log" 2>&1 || lost "$(cat "$TMP/verify.log" "$TMP/out")"
