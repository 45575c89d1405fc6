# SPDX-License-Identifier: BSD-3-Clause
# A program that is killed and begun again more often than a history has entries makes no stranger of a replica that is
# away all the time.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
FILE=$TMP/p
HERE=$(pool here)
size=$((4 * MIB))
SERVE_PID_HERE=$SERVE_PID
start_serve
AWAY=$(pool away)
port=$SERVE_PORT

begin() {
	start_api
	configure "$HERE" "$AWAY"
	ok set lanes 1
	ok set reconnect-min 10
	ok set reconnect-max 50
	ok map "$FILE" $size
}

begin
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
ok close
stop_api

wait_for 10 no_sessions || fail "the session stays"
stop "$SERVE_PID"
SERVE_PID=$SERVE_PID_HERE
for i in $(seq ${OPENINGS:-17}); do
	begin
	ok open
	ok put $((i * 4096)) 4096 $((i + 1))
	ok persist 0 $((i * 4096)) 4096
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
