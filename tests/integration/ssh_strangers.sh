# SPDX-License-Identifier: BSD-3-Clause
# Who connects all the time without a key does not fill the log of repld serve.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
keys=$TMP/serve/authorized_keys
skipped() {
	grep -c "authorized_keys:.*: line skipped" "$TMP/serve.log"
}
for i in 1 2 3; do
	echo "from=\"10.0.0.0/8\" $(cat "$TMP/other_key.pub")" >>"$keys"
done
python3 -c '
import socket, sys
for i in range(100):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while s.recv(4096):
            pass
' "$SERVE_PORT" || fail "strangers are not served"
lines=$(wc -l <"$TMP/serve.log")
[ "$lines" -ge 10 ] || fail "nobody is told of"
[ "$lines" -le 50 ] || fail "$lines lines of 100 strangers"
[ "$(skipped)" -eq 3 ] || fail "of three lines $(skipped) are told of"

# Nor one that is gone before it is served.
python3 -c '
import socket, struct, sys
for i in range(100):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
' "$SERVE_PORT" || fail "no server"
sleep 1
[ "$(wc -l <"$TMP/serve.log")" -le 50 ] || fail "$(wc -l <"$TMP/serve.log") lines: $(tail -1 "$TMP/serve.log")"

# Nor do keys of which none is listed.
for i in 1 2 3; do
	client -i "$TMP/other_key" -t 5000 cat "$SERVE_USER@127.0.0.1:$SERVE_PORT" </dev/null 2>"$TMP/err" &&
		fail "the wrong key is let in"
done
[ "$(wc -l <"$TMP/serve.log")" -le 50 ] || fail "$(wc -l <"$TMP/serve.log") lines"

# Whoever has one is.
echo hello | client cat "$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$TMP/out" || fail "no session"
grep -q "session of .* begins" "$TMP/serve.log" || fail "the session is not told of"

# A line that is skipped is told of again when the file is another one.
echo "cert-authority $(cat "$TMP/other_key.pub")" >>"$keys"
for i in 1 2; do
	echo hello | client cat "$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$TMP/out" || fail "no session"
done
[ "$(skipped)" -eq 7 ] || fail "of three lines and four $(skipped) are told of"
