# SPDX-License-Identifier: BSD-3-Clause
# A target that finds no memory for a part of an answer says so at once, and sends none that lacks it.
. "$(dirname "$0")/api_lib.sh"
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
make_keys
start_serve
start_api
configure "$(pool p)"
size=$((4 * MIB))
ok map "$TMP/p" $size
ok put 0 $size 1
ok open 1
ok close
stop_api
cp --preserve=ownership,mode "$TMP/serve/pools/p" "$TMP/full"
failed=0
for nth in 1 3 4 5; do
	kill "$SERVE_PID" && wait "$SERVE_PID" 2>/dev/null
	export CALL_FAILS="array $nth"
	LD_PRELOAD=$BUILD/tests/integration/call_fails.so start_serve
	unset CALL_FAILS
	cp "$TMP/full" "$TMP/serve/pools/p"
	# All but the first pages: a hole here, data there.
	truncate -s 8192 "$TMP/p" && truncate -s $size "$TMP/p"
	start_api
	configure "$(pool p)"
	ok set on-loss fail
	ok map "$TMP/p" $size
	api open 0
	if [ "$STATUS" = REPL_OK ]; then
		ok close
		equal "$TMP/p" "$TMP/serve/pools/p"
	else
		[ "$STATUS" = REPL_E_NOMEM ] || fail "array $nth: $STATUS $TEXT"
		failed=$((failed + 1))
	fi
	within 5000
	stop_api
done
[ $failed -ge 3 ] || fail "only $failed answers lacked memory"
