# SPDX-License-Identifier: BSD-3-Clause
# A program goes on with what was restored from a replica that lagged, while the one that had got further is away. When
# that comes back it is not overwritten: it has what the program never had, and people have to choose.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
away_pid=$SERVE_PID
away=$SERVE_USER@127.0.0.1:$SERVE_PORT/a
sed "s/^listen = .*/listen = 127.0.0.1:$SERVE_PORT/" "$TMP/repld.conf" >"$TMP/away.conf"
start_serve
size=$((40 * MIB))

set_up() {
	start_api
	configure "$(pool b)" "$away"
	ok set ack any
	ok set lanes 1
	ok set on-loss degrade
	ok set heartbeat-timeout 60000
	ok set reconnect-max 200
	ok set async-lag-bytes 128M
	ok set async-lag-time 60000
	ok map "$1" $size
}

both_have_it() {
	api stat 0
	[ "$(field lag_bytes)" = 0 ]
}

diverged() {
	ctl why "$TMP/lagged" | grep -q "^reason *diverged:"
}

set_up "$TMP/p"
ok open 1
ok close
ok open
ok put 0 $size 1
ok persist 0 0 $size
wait_for 10 both_have_it || fail "b does not follow"
late=$(session_of b) || fail "no session of b"
signalled STOP "$late"
# More than what is on its way to it.
for i in 1 2 3 4 5 6 7 8; do
	ok put $((i * 4 * MIB)) $((4 * MIB)) "$((i + 1))"
	ok persist 0 $((i * 4 * MIB)) $((4 * MIB))
done
signalled KILL "$(api_child)"
kill -CONT "$late"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
equal "$TMP/p" "$TMP/serve/pools/a"
stop "$away_pid"

ctl restore "$(pool b)" "$TMP/lagged" >"$TMP/out" 2>&1 || fail "restore of b"
set_up "$TMP/lagged"
ok open
ok put 0 4096 9
ok persist 0 0 4096
"$REPLD" serve --config "$TMP/away.conf" >"$TMP/away.log" 2>&1 &
PIDS="$PIDS $!"
wait_for 20 diverged || fail "not told: $(ctl why "$TMP/lagged")"
equal "$TMP/p" "$TMP/serve/pools/a"
ok close

# Nor when it is there at the next opening.
set_up "$TMP/lagged"
refused REPL_E_DIVERGED "^[^ ]*/a: .*diverged" open
equal "$TMP/p" "$TMP/serve/pools/a"
stop_api
ctl resolve --force --discard replica "$TMP/lagged" "$away" >"$TMP/out" 2>&1 || fail "resolve: $(cat "$TMP/out")"
equal "$TMP/lagged" "$TMP/serve/pools/a"
set_up "$TMP/lagged"
ok open
ok close
