# SPDX-License-Identifier: BSD-3-Clause
# Two replicas are lost one after the other while a third lags behind both. When it has all that the first can have it is
# told so, before it has what the second had: without that one, newest takes it and not the first, which has less.
. "$(dirname "$0")/laggard_lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far_beside

# write FROM TO: MiB of the pool, one drain each.
write() {
	local i

	for i in $(seq "$1" $(($2 - 1))); do
		ok put $((i * MIB)) $MIB $((i + 2))
		ok persist 0 $((i * MIB)) $MIB
	done
}

lose() {
	local pid

	pid=$(session_of "$2") || fail "no session of $2"
	kill -KILL "$pid"
	wait_for 10 degraded "$1" || fail "$2 is not lost: $TEXT"
}

lacks_less() {
	api stat 2
	[ "$(field lag_bytes)" -lt "$1" ]
}

start_api
configure "$(pool c)" "$(pool s)"
ok set async-target "$FAR_TARGET/b"
ok set on-loss degrade
stay_lost
ok set lanes 1
ok set op-timeout 30000
ok set heartbeat-timeout 60000
ok set async-lag-bytes 128M
ok set async-lag-time 60000
ok map "$TMP/p" $size
fill 2
# A MiB a second.
link both rate 8400
write 0 4
lose 0 c
write 4 16
lose 1 s
write 16 32
wait_for 30 lacks_less $((24 * MIB)) || fail "b does not follow: $TEXT"
is replication 0
lacks_less $((16 * MIB)) && fail "b has got too far: $TEXT"
kill -KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
link both rate 0
no_writer() {
	ctl newest "$(pool c)" "$FAR_TARGET/b" >"$TMP/out" 2>"$TMP/err" && ! grep -q writer "$TMP/out"
}
wait_for 20 no_writer || fail "newest: $(cat "$TMP/out" "$TMP/err")"
cmp -s -n $((8 * MIB)) "$TMP/p" "$TMP/far/pools/b" || lost "b has not got so far"
cmp -s -n $((8 * MIB)) "$TMP/p" "$TMP/serve/pools/c" && fail "c has what came when it was lost"
grep -q "^newest  *$FAR_TARGET/b$" "$TMP/out" || lost "b has more than c: $(cat "$TMP/out")"
# What the one that was lost later has is more still.
ctl newest "$(pool s)" "$FAR_TARGET/b" >"$TMP/out" || fail "newest: $(cat "$TMP/out")"
grep -q "^newest  *$(pool s)$" "$TMP/out" || lost "s has more than b: $(cat "$TMP/out")"
