# SPDX-License-Identifier: BSD-3-Clause
# What an asynchronous replica is sent at once may be more than its link carries in op-timeout: it is lost by its bounds alone.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/far_lib.sh"
OP_TIMEOUT=2000
start_far_beside
start_api
configure "$(pool near)"
ok set async-target "$FAR_TARGET/far"
ok set heartbeat-timeout 20000
ok set close-timeout 20000
ok map "$TMP/p" $((4 * MIB))
ok put 0 $((4 * MIB)) 1
ok open 1
lag_is_over() {
	ok stat 1
	is error 0
	[ "$(field lag_bytes)" = 0 ]
}
wait_for 10 lag_is_over || fail "the lag of the opening stays: $TEXT"
# 250 KB a second: twice op-timeout for a MiB, and the system takes a quarter of one before.
tc qdisc add dev "rf$$" root tbf rate 2mbit burst 32kb latency 400ms 2>"$TMP/tc.log" || exit 77
ok put $MIB $MIB 2
ok persist 0 $MIB $MIB
ok stat 1
[ "$(field lag_bytes)" -ge $MIB ] || fail "there was no lag: $TEXT"
wait_for 20 lag_is_over || fail "the lag stays: $TEXT"
is reconnect 0
[ "$(field write)" -gt 0 ] || fail "all went by messages, each of which is answered: $TEXT"
tc qdisc del dev "rf$$" root
ok close
stop_api
equal "$TMP/p" "$TMP/far/pools/far"
