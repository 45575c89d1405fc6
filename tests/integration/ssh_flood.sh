# SPDX-License-Identifier: BSD-3-Clause
# A client with a good key that sends what nobody reads, also behind the end, asks for ever, or reads no replies is cut off:
# it takes neither memory nor space in the log.
. "$(dirname "$0")/lib.sh"
make_keys
# A session that reads nothing.
cat >"$TMP/deaf" <<'END'
#!/bin/sh
exec sleep 120
END
chmod 755 "$TMP/deaf"
start_serve_with "$TMP/deaf"
for what in data extended requests; do
	timeout 30 "$BUILD/tests/integration/ssh_flood" "$what" 127.0.0.1 "$SERVE_PORT" "$SERVE_USER" \
		"$TMP/key" 2>"$TMP/flood.log"
	status=$?
	[ "$status" -ne 77 ] || exit 77
	[ "$status" -eq 0 ] || fail "$what: status $status"
	echo "$what: $(wc -c <"$TMP/serve.log") bytes of log"
done

# Behind a relay that brings a login's bytes and then none: replies stay where they are.
python3 -c '
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
client = listener.accept()[0]
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def replies():
    left = 16384
    while left > 0:
        data = server.recv(left)
        if not data:
            break
        client.sendall(data)
        left -= len(data)
threading.Thread(target=replies, daemon=True).start()
try:
    while data := client.recv(65536):
        server.sendall(data)
except OSError:
    pass
' "$SERVE_PORT" >"$TMP/relay" &
PIDS="$PIDS $!"
wait_for 10 test -s "$TMP/relay" || fail "no relay"
timeout 120 "$BUILD/tests/integration/ssh_flood" replies 127.0.0.1 "$(cat "$TMP/relay")" "$SERVE_USER" \
	"$TMP/key" 2>"$TMP/flood.log" || fail "replies: status $?"
grep -q "does not read its replies" "$TMP/serve.log" || fail "replies that nobody reads"
[ "$(wc -l <"$TMP/serve.log")" -lt 100 ] || fail "the log is full of it"

# Two seconds are for it to take the end of a session: a busy machine may bring less in them than is too much.
stop "$SERVE_PID"
start_serve_with /bin/true
for try in 1 2 3 4 5 none; do
	[ "$try" != none ] || fail "what comes behind the end is taken"
	timeout 30 "$BUILD/tests/integration/ssh_flood" late 127.0.0.1 "$SERVE_PORT" "$SERVE_USER" \
		"$TMP/key" 2>"$TMP/flood.log"
	status=$?
	[ "$status" -ne 77 ] || exit 77
	[ "$status" -eq 0 ] || fail "late: status $status"
	! grep -q "sends beyond its window" "$TMP/serve.log" || break
done
