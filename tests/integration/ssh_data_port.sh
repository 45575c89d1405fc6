# SPDX-License-Identifier: BSD-3-Clause
# A data port that is refused, silent or cut off while SSH works is told with its address, its port and the
# keys, as a reason of its own, and the replica is there again when the port is reached. data-told is what
# initiators are told where they reach the target by another address.
. "$(dirname "$0")/api_lib.sh"
port=$(free_port)
start_target "data-ports = $port"
start_api
configure "$T/p"
ok set reconnect-max 200
ok set connect-timeout 1500
ok map "$TMP/p" $MIB
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB

told() {
	sed -i '/^data-told/d' "$TMP/repld.conf"
	[ -z "${1-}" ] || echo "data-told = $1" >>"$TMP/repld.conf"
}
keys="let it through the firewalls, or set data-address, data-told or data-ports in the target's repld.conf"
says() {
	"$REPLCTL" why "$TMP/p" >"$TMP/why" 2>&1
	grep -q "^reason  *data-port: " "$TMP/why" && grep -Fq "$1" "$TMP/why" && grep -Fq "$keys" "$TMP/why"
}

# Nobody listens at the address of another machine.
told 127.0.0.9
kill -KILL "$(session_of p)"
wait_for 20 says "data port 127.0.0.9:$port refused the lane" || fail "refused: $(cat "$TMP/why")"
ctl_fails 7 "data port 127.0.0.9:$port refused" bench --quick "$T"
grep -q "^next: let the address and port .*replctl bench --quick $T$" "$TMP/err" || fail "next: $(cat "$TMP/err")"
# No way leads there: broadcast addresses are not connected to.
told 127.255.255.255
wait_for 20 says "data port 127.255.255.255:$port: " || fail "no way: $(cat "$TMP/why")"
# Behind translation: bound to the one address, reached by the other.
printf 'data-address = 127.0.0.7\n' >>"$TMP/repld.conf"
told 127.0.0.8
python3 -c '
import socket, sys, threading
port = int(sys.argv[1])
def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass
s = socket.create_server(("127.0.0.8", port), backlog=64)
print("ready", flush=True)
while True:
    c = s.accept()[0]
    try:
        d = socket.create_connection(("127.0.0.7", port))
    except OSError:
        c.close()
        continue
    for a, b in (c, d), (d, c):
        threading.Thread(target=pump, args=(a, b), daemon=True).start()
' "$port" >"$TMP/ready" &
PIDS="$PIDS $!"
wait_for 10 test -s "$TMP/ready" || fail "no relay"
ctl wait "$TMP/p" --timeout 20 >"$TMP/out" 2>&1 || fail "by a relay: $(cat "$TMP/out"); $(ctl why "$TMP/p")"
ok put 0 4096 2
ok persist 0 0 4096
ok compare 0
same
ok close
stop_api
