#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Lanes that are in use for longer than op-timeout, as a replica that comes back needs them all, hold a program up; its
# bytes go to the replicas all the same.
. "$(dirname "$0")/run_lib.sh"
mkdir "$TMP/lib"
cp "$BUILD/librepl-preload.so" "$TMP/lib"
cp "$BUILD/tests/integration/busy_librepl.so" "$TMP/lib/librepl.so.0"
timeout -k 5 40 env BUSY_SAYS="$TMP/said" LD_PRELOAD="$TMP/lib/librepl-preload.so" \
	REPL_PRELOAD_POOLS="$TMP/pool"$'\t'"host/pool" \
	"$BUILD/tests/integration/pmem_odd" protect "$TMP/pool" >"$TMP/out" 2>&1 ||
	fail "ends with $?: $(cat "$TMP/out")"
# It commits when the program begins to exit, and when the pool is closed behind that.
[ "$(cat "$TMP/said")" = $'flush 4096 4096\ndrain 0 0\ncommit 0 0\ncommit 0 0' ] ||
	fail "the replica got: $(cat "$TMP/said") $(cat "$TMP/out")"
for call in flush drain commit; do
	[ "$(grep -c "$call: waiting: lane 0 is in use" "$TMP/out")" -eq 2 ] || fail "$call: $(cat "$TMP/out")"
done
