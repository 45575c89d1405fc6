#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An unmodified libpmemobj program that is killed at any moment loses no committed transaction.
. "$(dirname "$0")/run_lib.sh"
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"
start_target
trial() {
	pool=$TMP/pool$1
	rm -f "$TMP/counts"
	run "$pool" "p$1" "$FILL" stream "$pool" killed 100000 >"$TMP/counts" 2>"$TMP/run.log" &
	pid=$!
	wait_for 20 grep -qs . "$TMP/counts" || fail "no transaction: $(cat "$TMP/run.log")"
	sleep "0.$((RANDOM % 300 + 100))"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	grep -q "NOT REPLICATED" "$TMP/run.log" && fail "$(cat "$TMP/run.log")"
	restore_pool "p$1" "$pool"
	expect_count "$pool" killed "$(tail -n 1 "$TMP/counts")"
	ctl remove --force "$T/p$1" >/dev/null 2>&1
	rm -f "$pool"*
}

i=0
while [ $i -lt "${TRIALS:-10}" ]; do
	i=$((i + 1))
	trial "$i"
	PMEM_IS_PMEM_FORCE=1 trial "forced$i"
done
