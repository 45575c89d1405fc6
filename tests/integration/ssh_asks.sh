# SPDX-License-Identifier: BSD-3-Clause
# A server that asks for ever and takes no replies, or sends on behind the end, is given up before that fills the memory
# of the program.
. "$(dirname "$0")/lib.sh"
make_keys
ssh-keygen -q -t ed25519 -N '' -f "$TMP/host_key" || fail "ssh-keygen"
port=$(free_port)
"$BUILD/tests/integration/ssh_asks" channels "$port" "$TMP/host_key" >"$TMP/asks.out" 2>"$TMP/asks.log" &
PIDS="$PIDS $!"
wait_for 10 grep -q listening "$TMP/asks.out" || fail "the server does not start"

# Behind a relay that brings a login's bytes and then none. Its buffer is small: what is in there is
# not in the program.
python3 -c '
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
print(listener.getsockname()[1], flush=True)
client = listener.accept()[0]
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def replies():
    left = 16384
    while left > 0:
        data = client.recv(left)
        if not data:
            break
        server.sendall(data)
        left -= len(data)
threading.Thread(target=replies, daemon=True).start()
try:
    while data := server.recv(65536):
        client.sendall(data)
except OSError:
    pass
' "$port" >"$TMP/relay" &
PIDS="$PIDS $!"
wait_for 10 test -s "$TMP/relay" || fail "no relay"
relay=$(cat "$TMP/relay")
trust "$relay" "$TMP/host_key.pub"
echo hello | timeout 150 "$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/known_hosts" -t 100000 cat \
	"x@127.0.0.1:$relay" >"$TMP/out" 2>"$TMP/err" && fail "an answer"
grep -q "^protocol: .*takes no replies" "$TMP/err" || fail "not given up but: $(cat "$TMP/err")"

# The end is waited for a second, in which a busy machine may bring less than is too much.
for try in 1 2 3 4 5 none; do
	[ "$try" != none ] || fail "not given up but: $(cat "$TMP/err")"
	port=$(free_port)
	"$BUILD/tests/integration/ssh_asks" data "$port" "$TMP/host_key" >"$TMP/asks.out" 2>"$TMP/asks.log" &
	server=$!
	PIDS="$PIDS $server"
	wait_for 10 grep -q listening "$TMP/asks.out" || fail "the server does not start"
	trust "$port" "$TMP/host_key.pub"
	echo hello | client -t 60000 cat "x@127.0.0.1:$port" >"$TMP/out" 2>"$TMP/err" && fail "an answer"
	wait "$server"
	[ $? -ne 77 ] || exit 77
	grep -q "^lost: " "$TMP/err" || break
done
grep -q "^protocol: .*sent unasked" "$TMP/err" || fail "not given up but: $(cat "$TMP/err")"
