# SPDX-License-Identifier: BSD-3-Clause
# A port without a server, an unknown name and a server that is no SSH server are "unreachable".
. "$(dirname "$0")/lib.sh"
make_keys
port=$(free_port)
expect_error unreachable "127\.0\.0\.1:$port.*refused" client cat "root@127.0.0.1:$port"
expect_error unreachable "no-such-host\.invalid:22" client -t 15000 cat "root@no-such-host.invalid:22"
expect_error config "fe80::1%nosuch: behind the '%' has to be the name of a network interface" \
	client cat "root@[fe80::1%nosuch]:$port"
expect_error unreachable "unreachable: \[::1\]:$port: " client cat "root@[::1]:$port"

python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
for answer in b"HTTP/1.1 400 Bad Request\r\n\r\n", b"":
    c = s.accept()[0]
    c.sendall(answer)
    c.close()
' >"$TMP/port" &
PIDS="$PIDS $!"
wait_for 20 test -s "$TMP/port" || fail "the fake server does not start"
port=$(cat "$TMP/port")
expect_error unreachable "127\.0\.0\.1:$port" client cat "root@127.0.0.1:$port"
expect_error unreachable "127\.0\.0\.1:$port" client cat "root@127.0.0.1:$port"
