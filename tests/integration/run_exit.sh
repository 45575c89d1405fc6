#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Exit compares no pool once more for each of its handlers, nor each time that a thread goes on meanwhile; without a
# replica it is one all the same.
. "$(dirname "$0")/run_lib.sh"
start_target

# opened MODE MOST: pmem_odd, which asks for 4 lanes and verify for one, has opened the pool so many times.
before=0
opened() {
	all=$(grep -c " 4 lanes open on" "$TMP/serve.log")
	[ $((all - before)) -le "$2" ] || fail "$1 opens the pool $((all - before)) times"
	before=$all
}
odd atexit
opened atexit 1

# The pool is closed before OpenSSL is gone, by which the targets are told: also the one that nobody waits for.
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --set async-target="$T/async" --replica "$T/openssl" \
	--pool "$TMP/openssl" -- timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" openssl "$TMP/openssl" >"$TMP/out" 2>&1 ||
	fail "openssl ends with $?: $(cat "$TMP/out")"
[ ! -s "$TMP/out" ] || fail "openssl says: $(cat "$TMP/out")"
for pool in openssl async; do
	wait_for 10 pool_idle $pool || fail "$pool is still open"
	ctl info "$T/$pool" | grep -q "^state .*up-to-date" || fail "$pool: $(ctl info "$T/$pool")"
	ctl verify "$TMP/openssl" "$T/$pool" >"$TMP/verify.log" 2>&1 || lost "$pool: $(cat "$TMP/verify.log")"
done
# One that the program has from its beginning on is not cleaned up at all, and its handlers may persist.
(export LD_PRELOAD=libcrypto.so.3 && run "$TMP/crypto" crypto timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" crypto \
	"$TMP/crypto") >"$TMP/out" 2>&1 || fail "crypto ends with $?: $(cat "$TMP/out")"
wait_for 10 pool_idle crypto || fail "crypto is still open"
ctl verify "$TMP/crypto" "$T/crypto" >"$TMP/verify.log" 2>&1 || lost "crypto: $(cat "$TMP/verify.log" "$TMP/out")"
grep -q "before pool.close" "$TMP/serve.log" && fail "not closed in order"
opened crypto 4

# Who persists behind the end opens it, once: the bytes that were under way may be on one side only. What came behind
# the last handler is told, and asked for by a mark, for which the next one opens the pool once more.
for i in 1 2 3 4; do
	(run "$TMP/lives" lives timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" lives "$TMP/lives") >"$TMP/out" 2>&1 ||
		fail "lives ends with $?: $(cat "$TMP/out")"
	wait_for 10 pool_idle lives || fail "lives is still open"
	opened lives 3
done

# All is acknowledged, and exit makes nothing durable: that a replica is away then does not stop the program, and is waited for
# once.
for loss in fail block; do
	"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --set on-loss=$loss --set block-timeout=300 \
		--replica "$T/$loss" --pool "$TMP/$loss" -- \
		timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" prints "$TMP/$loss" >"$TMP/$loss.out" 2>"$TMP/$loss.err" &
	eval "$loss=$!"
	PIDS="$PIDS $!"
	wait_for 20 grep -q holds "$TMP/$loss.out" || fail "$loss does not begin: $(cat "$TMP/$loss.err")"
done
connections=$(children "$SERVE_PID")
# shellcheck disable=SC2046,SC2086
signalled KILL "$SERVE_PID" $connections $(for pid in $connections; do children "$pid"; done)
lost_is_known() {
	! ctl status "$TMP/$1" | grep -q "^state.* established"
}
for loss in fail block; do
	wait_for 20 lost_is_known $loss || fail "$loss does not see the loss: $(ctl status "$TMP/$loss")"
done
touch "$TMP/fail.enough" "$TMP/block.enough"
for loss in fail block; do
	wait "${!loss}"
	status=$?
	[ $status -eq 0 ] || fail "with on-loss = $loss it ends with $status: $(cat "$TMP/$loss.err")"
	[ "$(tail -n 1 "$TMP/$loss.out")" = ends ] || fail "with on-loss = $loss it prints: $(cat "$TMP/$loss.out")"
	[ "$(grep -c "closing: " "$TMP/$loss.err")" -eq 1 ] || fail "with on-loss = $loss: $(cat "$TMP/$loss.err")"
	grep -q "REPLICA .* LOST" "$TMP/$loss.err" || fail "with on-loss = $loss: $(cat "$TMP/$loss.err")"
done
