# SPDX-License-Identifier: BSD-3-Clause
# A replica that takes nothing any more is given up at the bound of its lag, after a drain has waited for it by its deadline or at once, or by a close, which never calls it up to date, and misses nothing when it is back.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=4000
make_keys
start_serve
start_api

is_back() {
	ok stat 1
	[ "$(field replication)" = 0 ]
}

# lag POLICY LONGEST: no drain takes longer.
lag() {
	configure "$(pool "$1-a")"
	ok set async-target "$(pool "$1-b")"
	ok set on-lag "$1"
	ok set on-loss fail
	ok set async-lag-bytes 1M
	ok set heartbeat-timeout 30000
	ok map "$TMP/p-$1" $((4 * MIB))
	ok put 0 $((4 * MIB)) 1
	ok open 1
	ctl status "$TMP/p-$1" >"$TMP/out" || fail "status"
	[ "$(grep -c "up-to-date, asynchronous$" "$TMP/out")" = 1 ] || fail "$(cat "$TMP/out")"
	pid=$(session_of "$1-b") || fail "no session of $1-b"
	signalled STOP "$pid"
	worst=0
	for i in $(seq 80); do
		ok put $((i * 32768)) 32768 "$i"
		ok persist 0 $((i * 32768)) 32768
		[ "$MS" -le "$worst" ] || worst=$MS
		[ "$i" -ne 20 ] || ok stat 1
		[ "$i" -ne 20 ] || is replication 0
	done
	[ "$worst" -le "$2" ] || fail "a drain took $worst ms"
	ok stat 1
	[ "$(field replication)" != 0 ] || fail "it is not given up: $TEXT"
	[ "$(field lag_bytes)" = 0 ] || fail "it is given up and queued for: $TEXT"
	[[ $TEXT =~ "lags by more" ]] || echo "reason: $TEXT"
	echo "$1: the longest drain took $worst ms"
	kill -KILL "$pid"
	wait_for 30 is_back || fail "it is not back: $TEXT"
	ok close
	equal "$TMP/p-$1" "$TMP/serve/pools/$1-a"
	equal "$TMP/p-$1" "$TMP/serve/pools/$1-b"
}
# A close does not wait longer than it may, and one that has not got all is not up to date.
close_over_laggard() {
	configure "$(pool close-a)" "$(pool close-b)" "$(pool close-c)"
	ok set ack quorum
	ok set heartbeat-timeout 30000
	ok map "$TMP/p-close" $((4 * MIB))
	ok put 0 $((4 * MIB)) 1
	ok open 1
	pid=$(session_of close-c) || fail "no session of close-c"
	signalled STOP "$pid"
	ok put 0 100000 2
	ok persist 0 0 100000
	ok close
	within $((2000 + LATE))
	kill -KILL "$pid"
	wait_for 10 no_sessions || fail "sessions stay"
	for name in a b c; do
		ctl info "$(pool "close-$name")" >"$TMP/info-$name"
	done
	grep -q "^state *up-to-date" "$TMP/info-a" && grep -q "^state *up-to-date" "$TMP/info-b" ||
		fail "$(cat "$TMP/info-a" "$TMP/info-b")"
	grep -q "^state *up-to-date" "$TMP/info-c" && fail "$(cat "$TMP/info-c")"
	[ "$(grep "^generation" "$TMP/info-c")" != "$(grep "^generation" "$TMP/info-a")" ] ||
		fail "it has the generation of those that have more: $(cat "$TMP/info-c")"
	ok open 0
	ok close
	equal "$TMP/p-close" "$TMP/serve/pools/close-c"
}
close_over_laggard
lag degrade 2500
lag slow $((OP_TIMEOUT + LATE))
stop_api
