#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the constructor of a library persists, while a program loads that, does not wait for the library; it is on the replica
# with what is made durable next.
. "$(dirname "$0")/run_lib.sh"
ODD=$BUILD/tests/integration/pmem_odd
LOADED=$BUILD/tests/integration/libpmem_loaded.so
export LOADED
start_target
file=$TMP/loaded

# A program that makes nothing durable without replicas does not do so there; meanwhile the other one.
(run "$TMP/never" never timeout -k 5 60 "$ODD" loaded "$TMP/never") >"$TMP/never.out" 2>&1 &
never=$!
(ON_LOSS=degrade run "$file" loaded timeout -k 5 60 "$ODD" loaded "$file") >"$TMP/out" 2>&1 &
pid=$!
PIDS="$PIDS $pid $never"
wait_for 40 grep -q "loaded: is replicated now" "$TMP/out" || fail "it is not replicated: $(cat "$TMP/out")"
touch "$file.enough"
wait "$pid" || fail "it ends with $?: $(cat "$TMP/out")"
grep -q "loaded: NOT REPLICATED: a library is being loaded" "$TMP/out" || fail "it says: $(cat "$TMP/out")"
[ "$(wc -l <"$TMP/out")" -eq 2 ] || fail "more than two lines: $(cat "$TMP/out")"
wait_for 10 pool_idle loaded || fail "loaded is still open"
ctl verify "$file" "$T/loaded" >"$TMP/verify.log" 2>&1 || lost "loaded: $(cat "$TMP/verify.log" "$TMP/out")"

wait "$never"
status=$?
[ $status -eq 134 ] || fail "with on-loss = fail it ends with $status: $(cat "$TMP/never.out")"
grep -q "never: NOT REPLICATED: a library is being loaded" "$TMP/never.out" || fail "it says: $(cat "$TMP/never.out")"
