# SPDX-License-Identifier: BSD-3-Clause
# A program that loads librepl and unloads it again, as libpmemobj does with librpmem: what an opening
# that was too late has left behind, since an agent does not sign, ends later and harms nobody.
. "$(dirname "$0")/lib.sh"
start_target

python3 -c '
import base64, socket, struct, sys
path, key = sys.argv[1:]
blob = base64.b64decode(key)
answer = b"\x0c" + struct.pack(">I", 1) + struct.pack(">I", len(blob)) + blob + struct.pack(">I", 0)
s = socket.socket(socket.AF_UNIX)
s.bind(path)
s.listen(64)
clients = []
while True:
    c = s.accept()[0]
    c.sendall(struct.pack(">I", len(answer)) + answer)
    clients.append(c)
' "$TMP/agent" "$(cut -d " " -f 2 "$TMP/key.pub")" &
AGENT_PID=$!
PIDS="$PIDS $AGENT_PID"
wait_for 20 test -S "$TMP/agent" || fail "the agent does not start"

mkfifo "$TMP/stdin"
SSH_AUTH_SOCK=$TMP/agent "$BUILD/tests/integration/api_unload" "$BUILD/librepl.so.0" "$T/p" \
	"$TMP/known_hosts" <"$TMP/stdin" >"$TMP/out" 2>"$TMP/err" &
UNLOAD_PID=$!
PIDS="$PIDS $UNLOAD_PID"
exec 8>"$TMP/stdin"
unloaded() { grep -q unloaded "$TMP/out" || gone "$UNLOAD_PID"; }
wait_for 20 unloaded || fail "no end of the opening"
# The agent ends: so does the wait for its signature.
stop "$AGENT_PID"
exec 8>&-
wait "$UNLOAD_PID"
status=$?
[ "$status" -eq 0 ] || fail "status $status: $(cat "$TMP/out" "$TMP/err")"
