#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that makes bytes of its pool durable before the file has its size is replicated from its first byte on, whatever
# sizes it has on the way.
. "$(dirname "$0")/run_lib.sh"
start_target

# The empty file is none of these.
odd sized
odd behind

# It is cut while its replicas grow, which they refuse then; when it has that size once more they do not.
(run "$TMP/recut" recut timeout -k 5 40 env CUT=1048676 \
	LD_PRELOAD="$BUILD/tests/integration/cut_once.so:$BUILD/librepl-preload.so" \
	"$BUILD/tests/integration/pmem_odd" recut "$TMP/recut") >"$TMP/out" 2>&1 || fail "recut ends with $?: $(cat "$TMP/out")"
[ ! -s "$TMP/out" ] || fail "recut says: $(cat "$TMP/out")"
wait_for 10 pool_idle recut || fail "recut is still open"
ctl verify "$TMP/recut" "$T/recut" >"$TMP/verify.log" 2>&1 || lost "recut: $(cat "$TMP/verify.log")"
