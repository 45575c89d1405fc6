# SPDX-License-Identifier: BSD-3-Clause
# Where all data ports of a target are taken, that is a limit of the target's: a program that was
# replicated there goes on without it, is told which key to widen, and has it back when one is free.
. "$(dirname "$0")/api_lib.sh"
make_keys
port=$(free_port)
start_serve "data-ports = $port"
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
start_api
configure "$T/p"
ok set reconnect-max 300
ok map "$TMP/p" $MIB
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
ok close

python3 -c 'import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(1)
print("taken", flush=True)
time.sleep(60)' "$port" >"$TMP/taken" &
taken=$!
PIDS="$PIDS $taken"
wait_for 10 grep -q taken "$TMP/taken" || fail "the port is not to be had"

ok open 0
ok stat 0
is replication 2
[[ $TEXT == *"widen data-ports in repld.conf"* ]] || fail "the reason: $TEXT"
ctl why "$TMP/p" >"$TMP/out" || fail "why"
grep -q "^reason  *target-limit:" "$TMP/out" || fail "$(cat "$TMP/out")"
head -c 65536 /dev/urandom >"$TMP/f"
ctl_fails 1 "^next: raise the limit" sync "$TMP/f" "$T/q"

kill "$taken"
wait_for 20 established 0 || fail "not back: $TEXT"
ok close
stop_api
