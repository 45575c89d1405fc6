# SPDX-License-Identifier: BSD-3-Clause
# A target that finds no memory for an answer sends none that is empty: a pool is not called damaged for that.
. "$(dirname "$0")/lib.sh"
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
start_target
ctl create "$T/p" --size 64K >/dev/null || fail "create"
ctl why "$T/p" >"$TMP/all" || fail "why"
failed=0
for nth in 1 2 3 4 5 6 7 8; do
	kill "$SERVE_PID" && wait "$SERVE_PID" 2>/dev/null
	export CALL_FAILS="object $nth"
	LD_PRELOAD=$BUILD/tests/integration/call_fails.so start_serve
	unset CALL_FAILS
	T=$SERVE_USER@127.0.0.1:$SERVE_PORT
	ctl why "$T/p" >"$TMP/out" 2>"$TMP/err" || failed=$((failed + 1))
	! grep -q "damaged" "$TMP/out" || fail "object $nth: $(cat "$TMP/out")"
	! grep -q "^reason  *target-limit" "$TMP/out" || failed=$((failed + 1))
done
[ $failed -ge 3 ] || fail "only $failed answers lacked memory"
