# SPDX-License-Identifier: BSD-3-Clause
# An asynchronous replica behind a link of 500 ms there and back holds up no drain, its lag is shown, and it is equal and up to date after a close.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/far_lib.sh"
OP_TIMEOUT=10000
start_far_beside
start_api
configure "$(pool near)"
ok set async-target "$FAR_TARGET/far"
ok set connect-timeout 60000
ok set close-timeout 20000
# Both count against a replica that does not answer, and a way of 500 ms is none.
ok set heartbeat-timeout 10000
ok map "$TMP/p" $((4 * MIB))
ok put 0 $((4 * MIB)) 1
ok open 1
link both delay 250
begin=$(date +%s%N)
for i in $(seq 100); do
	ok put $((i * 4096)) 4096 "$i"
	ok persist $((i % 4)) $((i * 4096)) 4096
done
took=$((($(date +%s%N) - begin) / 1000000))
ok stat 1
is replication 0
[ "$(field lag_bytes)" -gt 0 ] || fail "no lag is shown: $TEXT"
echo "100 drains took $took ms, lag $(field lag_bytes) bytes, $(field lag_ms) ms"
# Had they waited it would be 50 seconds.
[ "$took" -lt 25000 ] || fail "100 drains took $took ms"
lag_is_over() {
	ok stat 1
	[ "$(field lag_bytes)" = 0 ]
}
wait_for 20 lag_is_over || fail "the lag stays: $TEXT"
is replication 0
ok put 0 100 9
ok persist 0 0 100
ok close
stop_api
equal "$TMP/p" "$TMP/serve/pools/near"
equal "$TMP/p" "$TMP/far/pools/far"
link both clear
"$BUILD/replctl" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" info \
	"$FAR_TARGET/far" >"$TMP/info" || fail "info"
grep -q "^state *up-to-date" "$TMP/info" || fail "$(cat "$TMP/info")"
