# SPDX-License-Identifier: BSD-3-Clause
# Silent connections to repld serve, more than it takes at once, don't keep a good one out.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
python3 -c '
import socket, sys, time
held = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for i in range(100)]
print("ready", flush=True)
time.sleep(30)
' "$SERVE_PORT" >"$TMP/ready" &
PIDS="$PIDS $!"
wait_for 10 test -s "$TMP/ready" || fail "no silent connections"
most=2000
! sanitized || most=6000
began=$(date +%s%N)
for i in 1 2 3; do
	echo hello | client -t $most cat "$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$TMP/out" ||
		fail "kept out by silent connections"
done
took=$((($(date +%s%N) - began) / 1000000))
[ "$took" -le $((3 * most)) ] || fail "three logins took $took ms"
count=$(ps -o pid= --ppid "$SERVE_PID" | wc -l)
[ "$count" -le 20 ] || fail "$count processes for silent connections"
