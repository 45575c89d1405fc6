#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# However an unmodified program makes bytes durable, and in however many pools, its replicas have them.
. "$(dirname "$0")/run_lib.sh"
WRITE=$BUILD/tests/integration/pmem_write
start_target

replicated() {
	wait_for 10 pool_idle "$2" || fail "$2 is still open"
	ctl verify "$1" "$T/$2" >"$TMP/verify.log" 2>&1 || lost "$2: $(cat "$TMP/verify.log")"
	tr -d '\0' <"$TMP/serve/pools/$2" | grep -q . || fail "$2 holds nothing"
}

for mode in pmem pmem2 msync threads; do
	(run "$TMP/$mode" "$mode" "$WRITE" $mode "$TMP/$mode") >"$TMP/out" 2>&1 || fail "$mode: $(cat "$TMP/out")"
	[ ! -s "$TMP/out" ] || fail "$mode says: $(cat "$TMP/out")"
	replicated "$TMP/$mode" "$mode"
	# The pool exists now, and so does its replica.
	(PMEM_IS_PMEM_FORCE=1 run "$TMP/$mode" "$mode" "$WRITE" $mode "$TMP/$mode") >"$TMP/out" 2>&1 ||
		fail "$mode again: $(cat "$TMP/out")"
	replicated "$TMP/$mode" "$mode"
done

# libpmem2's deep flush has no drain behind it, and a signal handler's persist is the program's own, whatever it has
# interrupted: what they make durable is there when they return.
for mode in deep amid; do
	(run "$TMP/$mode" $mode "$WRITE" $mode "$TMP/$mode") >"$TMP/out" 2>&1
	[ $? -eq 137 ] || fail "$mode was not killed: $(cat "$TMP/out")"
	replicated "$TMP/$mode" $mode
done

# Where caches are flushed when the power fails a program that asks makes nothing durable. It is told otherwise.
for mode in byte auto; do
	flushed=$BUILD/tests/integration/auto_flush.so
	[ "$(PMEM2_FORCE_GRANULARITY=BYTE LD_PRELOAD=$flushed "$WRITE" $mode "$TMP/$mode.alone")" = stored ] ||
		fail "$mode flushes where it need not"
	(run "$TMP/$mode" $mode env PMEM2_FORCE_GRANULARITY=BYTE LD_PRELOAD="$BUILD/librepl-preload.so:$flushed" \
		"$WRITE" $mode "$TMP/$mode") >"$TMP/out" 2>&1
	[ $? -eq 137 ] || fail "$mode was not killed: $(cat "$TMP/out")"
	replicated "$TMP/$mode" $mode
done

# Two pools, one of them with two replicas.
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --replica "$T/first" \
	--replica "$T/first.b" --pool "$TMP/two" --replica "$T/second" --pool "$TMP/two.2" \
	-- "$WRITE" two "$TMP/two" >"$TMP/out" 2>&1 || fail "two: $(cat "$TMP/out")"
replicated "$TMP/two" first
replicated "$TMP/two" first.b
replicated "$TMP/two.2" second

# What is durable in one may rely on the other, of which nothing was made durable: a pool set's next part.
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --replica "$T/other" --pool "$TMP/other" \
	--replica "$T/other.2" --pool "$TMP/other.2" -- "$BUILD/tests/integration/pmem_odd" other "$TMP/other" \
	>"$TMP/out" 2>&1
[ $? -eq 137 ] || fail "other was not killed: $(cat "$TMP/out")"
replicated "$TMP/other" other
replicated "$TMP/other.2" other.2
