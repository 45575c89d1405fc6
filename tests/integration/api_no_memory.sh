# SPDX-License-Identifier: BSD-3-Clause
# A request for which the program finds no memory ends in an error, or in the loss of a replica that comes
# back; never the program.
. "$(dirname "$0")/api_lib.sh"
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
make_keys
start_serve

# once WHAT NTH: that one fails, what is asked for then succeeds.
once() {
	export CALL_FAILS="$1 $2"
	LD_PRELOAD=$BUILD/tests/integration/call_fails.so start_api
	unset CALL_FAILS
	configure "$(pool p)"
	ok set heartbeat-interval 10
	ok set reconnect-min 10
	ok map "$TMP/p" $MIB
	api open 1
	[ "$STATUS" = REPL_OK ] || {
		[ "$STATUS" = REPL_E_NOMEM ] || fail "$1 $2: $STATUS $TEXT"
		failed=$((failed + 1))
		ok open 1
	}
	ok put 0 $MIB "$2"
	ok persist 0 0 $MIB
	wait_for 20 established 0 || fail "$1 $2: $TEXT"
	ok compare 0
	same
	ok close
	stop_api
	equal "$TMP/p" "$TMP/serve/pools/p"
}

failed=0
for nth in 1 3 5 8; do
	once object $nth
done
for nth in 1 2; do
	once array $nth
done
[ $failed -ge 3 ] || fail "only $failed opens failed"
