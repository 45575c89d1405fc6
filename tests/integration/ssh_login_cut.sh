# SPDX-License-Identifier: BSD-3-Clause
# A connection that ends during the login, as of a machine that goes down, is no refusal of the key: nobody is told to
# look at his keys, and a program goes on without that replica.
. "$(dirname "$0")/lib.sh"
make_keys
start_sshd "Subsystem repl /bin/cat"

# cut AFTER: a relay that ends each connection when the client has sent so many bytes; it says its port.
cat >"$TMP/cut.py" <<'EOF'
import socket, sys, threading
after, to = int(sys.argv[1]), int(sys.argv[2])
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
def back(a, b):
    try:
        while (d := a.recv(65536)):
            b.sendall(d)
    except OSError:
        pass
while True:
    c, _ = s.accept()
    t = socket.create_connection(("127.0.0.1", to))
    threading.Thread(target=back, args=(t, c), daemon=True).start()
    sent = 0
    while sent < after and (d := c.recv(65536)):
        t.sendall(d)
        sent += len(d)
    for x in (t, c):
        x.shutdown(socket.SHUT_RDWR)
        x.close()
EOF
lost=0
for after in 1000 1150 1300 1400 1450 1500; do
	rm -f "$TMP/port"
	python3 "$TMP/cut.py" $after "$SSHD_PORT" >"$TMP/port" 2>"$TMP/cut.err" &
	cut=$!
	PIDS="$PIDS $cut"
	wait_for 20 test -s "$TMP/port" || fail "no relay: $(cat "$TMP/cut.err")"
	port=$(cat "$TMP/port")
	sed "s/^\[[^]]*\]:[0-9]*/[127.0.0.1]:$port/" "$TMP/known_hosts" >"$TMP/known"
	echo hello | timeout 20 "$CHANNEL_CAT" -t 5000 -i "$TMP/key" -k "$TMP/known" cat "$USER_NAME@127.0.0.1:$port" \
		>"$TMP/out" 2>"$TMP/err"
	echo "$after $(cat "$TMP/err")" >&2
	grep -q "SSH connection lost" "$TMP/err" && lost=$((lost + 1))
	grep -q "^auth" "$TMP/err" && fail "cut behind $after bytes: $(cat "$TMP/err")"
	kill $cut
done
[ $lost -gt 0 ] || fail "none was cut during the login"
