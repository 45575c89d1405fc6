#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two threads of a program fork at the same time, one of them in a signal handler amid a flush, or one forks while the
# other one flushes under a lock that forks take: both go on, and what they make durable is on the replica.
. "$(dirname "$0")/run_lib.sh"
start_target

# forks POOL LIBRARY...: loaded in front of all
forks() {
	pool=$1
	shift
	(run "$TMP/$pool" "$pool" timeout -k 5 60 env LD_PRELOAD="$*" "$BUILD/tests/integration/pmem_forks" "$TMP/$pool") \
		>"$TMP/out" 2>&1 || fail "the program ends with $?: $(cat "$TMP/out")"
	[ ! -s "$TMP/out" ] || fail "it says: $(cat "$TMP/out")"
	wait_for 10 pool_idle "$pool" || fail "the session stays"
	ctl verify "$TMP/$pool" "$T/$pool" >"$TMP/verify.log" 2>&1 || lost "$(cat "$TMP/verify.log")"
}

forks twice "$BUILD/librepl-preload.so"
# The address sanitizer has an allocator of its own.
nm -D "$BUILD/librepl-preload.so" | grep -q __asan && { left_out "another allocator, with the address sanitizer"; exit; }
forks allocator "$BUILD/librepl-preload.so" "$BUILD/tests/integration/fork_malloc.so"
forks allocator_late "$BUILD/librepl-preload.so" "$BUILD/tests/integration/fork_malloc_late.so"
