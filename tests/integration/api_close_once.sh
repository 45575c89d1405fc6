# SPDX-License-Identifier: BSD-3-Clause
# Connections that end in whatever way are closed once: a second time it could be another thread's file.
. "$(dirname "$0")/api_lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
LD_PRELOAD=$BUILD/tests/integration/close_once.so
[ -e "$LD_PRELOAD" ] || fail "no $LD_PRELOAD"
cat >"$TMP/shell" <<END
#!/bin/sh
LD_PRELOAD=$LD_PRELOAD exec "$API_SHELL"
END
unset LD_PRELOAD
chmod 755 "$TMP/shell"
API_SHELL=$TMP/shell
make_keys
start_serve

replication_is() {
	ok stat "$1"
	[ "$(field replication)" = "$2" ]
}

# What says nothing of SSH, and ends or is silent.
python3 -c '
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"no SSH\r\n" * 1000)
    c.close()' >"$TMP/babble" &
PIDS="$PIDS $!"
wait_for 10 test -s "$TMP/babble" || fail "no server"

start_api
configure "$(pool a)" "$(pool b)" "$USER_NAME@127.0.0.1:$(cat "$TMP/babble")/c"
ok set reconnect-min 100
ok set reconnect-max 200
ok set heartbeat-timeout 2000
ok map "$TMP/p" $MIB
ok open 1
for way in KILL KILL TERM; do
	signalled $way "$(session_of a)"
	wait_for 20 replication_is 0 2 || fail "the loss of a is not seen"
	ok persist 0 0 64
	wait_for 20 replication_is 0 0 || fail "a is not back"
done
# Both at once, with their SSH servers.
for pid in $(pgrep -P "$SERVE_PID"); do
	signalled KILL "$pid" $(pgrep -P "$pid")
done
wait_for 20 replication_is 1 2 || fail "the loss of b is not seen"
wait_for 20 replication_is 1 0 || fail "b is not back"
wait_for 20 replication_is 0 0 || fail "a is not back"
for pid in $(pgrep -P "$SERVE_PID"); do
	signalled KILL "$pid" $(pgrep -P "$pid")
done
ok close
ok open 1
ok close
stop_api
[ ! -s "$TMP/api.log" ] || fail "$(cat "$TMP/api.log")"
