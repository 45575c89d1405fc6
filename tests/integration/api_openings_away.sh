# SPDX-License-Identifier: BSD-3-Clause
# A program that is killed and begun again more often than a history has entries makes no stranger of a replica that is
# away all the time.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
FILE=$TMP/p
HERE=$(pool here)
third=$(pool third)
# Of a pool of less than a page nothing but the bases fits into the map.
size=${SIZE:-$((4 * MIB))}
SERVE_PID_HERE=$SERVE_PID
start_serve ${TOLD:+"heartbeat-timeout = 30000" "heartbeat = 10000"}
AWAY=$(pool away)
port=$SERVE_PORT

begin() {
	start_api
	configure "$HERE" "$AWAY" "$@"
	ok set lanes 1
	ok set reconnect-min 10
	ok set reconnect-max 50
	ok map "$FILE" $size
}

generation() {
	ctl info --json "$AWAY" | member generation
}

# Another one is lost while away does not answer: it hears of that when nobody listens any more. No ping is in front of it.
lose_told() {
	local held known

	known=$(generation)
	held=$(session_of away) || fail "no session of away"
	signalled STOP "$held"
	ctl pause "$FILE" "$third" >"$TMP/out" 2>&1 || fail "pause: $(cat "$TMP/out")"
	wait_for 20 degraded 2 || fail "the third is not lost: $TEXT"
	wait_for 20 degraded 1 || fail "it is not lost: $TEXT"
	kill -CONT "$held"
	wait_for 10 no_sessions || fail "the session stays"
	[ "$(generation)" != "$known" ] || fail "it was not told"
}

if [ -n "${TOLD-}" ]; then
	OP_TIMEOUT=2000
	begin "$third"
	stay_lost
	ok set heartbeat-timeout 30000
	ok set heartbeat-interval 10000
else
	begin
fi
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
if [ -n "${TOLD-}" ]; then
	lose_told
	kill -KILL $(api_child)
	exec {API_IN}>&-
	wait "$api_pid"
else
	ok close
	stop_api
fi

wait_for 10 no_sessions || fail "the session stays"
stop "$SERVE_PID"
SERVE_PID=$SERVE_PID_HERE
wait_for 10 no_sessions || fail "the session stays"
for i in $(seq ${OPENINGS:-17}); do
	begin
	ok open
	ok put $((i * size / 32)) 30 $((i + 1))
	ok persist 0 $((i * size / 32)) 30
	kill -KILL $(api_child)
	exec {API_IN}>&-
	wait "$api_pid"
	wait_for 10 no_sessions || fail "the session stays"
done
SERVE_AT=$port
start_serve
begin
ok open
wait_for 20 established 1 || fail "it does not come back: $TEXT"
for i in 0 1; do
	ok compare $i
	same
done
ok close
equal "$FILE" "$TMP/serve/pools/away"
