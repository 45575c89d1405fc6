# SPDX-License-Identifier: BSD-3-Clause
# Logins to one target that wait for an agent for ever are no reason not to log in to another one, nor
# for a child of a fork not to log in at all.
. "$(dirname "$0")/lib.sh"
start_target
start_sshd "MaxStartups 100" "ForceCommand cat"

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
    clients.append(c)
    try:
        c.sendall(struct.pack(">I", len(answer)) + answer)
    except OSError:
        pass
' "$TMP/agent" "$(cut -d " " -f 2 "$TMP/key.pub")" &
PIDS="$PIDS $!"
wait_for 20 test -S "$TMP/agent" || fail "the agent does not start"

SSH_AUTH_SOCK=$TMP/agent timeout -k 5 100 "$BUILD/tests/integration/login_left" "$TMP/known_hosts" \
	"$TMP/key" "$USER_NAME@127.0.0.1:$SSHD_PORT" "$T" 2>"$TMP/err" ||
	fail "status $?: $(cat "$TMP/err")"
