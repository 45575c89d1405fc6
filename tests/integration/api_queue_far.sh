# SPDX-License-Identifier: BSD-3-Clause
# An asynchronous replica behind a link of 500 ms there and back holds up no drain, its lag is shown, and it is equal and up to date after a close.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/far_lib.sh"
OP_TIMEOUT=10000
make_keys

# The far one first: the functions know one server only, and the near one stays theirs.
mkdir -p "$TMP/far/pools"
cp "$TMP/authorized_keys" "$TMP/far/authorized_keys"
chown -R "$SERVE_USER" "$TMP/far"
cat >"$TMP/far.conf" <<CONF
[repld]
pool-dir = $TMP/far/pools
listen = $FAR.2:0
host-key = $TMP/far/host_key
authorized-keys = $TMP/far/authorized_keys
user = $SERVE_USER
CONF
ip netns exec "$NETNS" "$REPLD" serve --config "$TMP/far.conf" >"$TMP/far.log" 2>&1 &
PIDS="$! $PIDS"
wait_for 10 grep -q "listening on" "$TMP/far.log" || fail "the far target does not start"
far_port=$(sed -n 's/.*listening on .*:\([0-9][0-9]*\)$/\1/p' "$TMP/far.log")
start_serve
ssh-keygen -y -f "$TMP/far/host_key" | cut -d ' ' -f 1,2 |
	sed "s/^/[$FAR.2]:$far_port /" >>"$TMP/known_hosts"

start_api
configure "$(pool near)"
ok set async-target "$SERVE_USER@$FAR.2:$far_port/far"
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
	"$SERVE_USER@$FAR.2:$far_port/far" >"$TMP/info" || fail "info"
grep -q "^state *up-to-date" "$TMP/info" || fail "$(cat "$TMP/info")"
