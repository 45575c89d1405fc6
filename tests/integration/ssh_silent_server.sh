# SPDX-License-Identifier: BSD-3-Clause
# A server that takes the TCP connection and says nothing, or stops after its greeting, is a
# timeout by the deadline.
. "$(dirname "$0")/lib.sh"
make_keys
python3 -c '
import socket, time
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
held = []
for answer in b"", b"SSH-2.0-Half_1.0\r\n":
    c = s.accept()[0]
    c.sendall(answer)
    held.append(c)
time.sleep(30)
' >"$TMP/port" &
PIDS="$PIDS $!"
wait_for 20 test -s "$TMP/port" || fail "the fake server does not start"
target=root@127.0.0.1:$(cat "$TMP/port")
hint=
for kind in silent half; do
	began=$(date +%s%N)
	expect_error timeout "timed out waiting for the SSH server's greeting and key exchange$hint$" client -t 700 cat "$target"
	took=$((($(date +%s%N) - began) / 1000000))
	[ "$took" -ge 600 ] && [ "$took" -le 3000 ] || fail "$kind server: took $took ms, not 700"
	hint='; the greeting came: does the network in between lose large packets \(MTU\)\?'
done
