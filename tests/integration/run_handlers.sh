#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a signal handler persists is on the replica, whatever it has interrupted: malloc(3) while the replicas are tried
# again, whose memory it waits for no more than that, or a drain, of however much.
. "$(dirname "$0")/run_lib.sh"
start_target
stop "$SERVE_PID"
file=$TMP/heap

# Who hangs up, some times, and is the target from then on.
python3 - "$SERVE_PORT" <<'END' >"$TMP/nobody" &
import socket, sys

s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen()
print("listens", flush=True)
for _ in range(2):
    s.accept()[0].close()
END
nobody=$!
PIDS="$PIDS $nobody"
wait_for 10 grep -q listens "$TMP/nobody" || fail "nobody listens"
(ON_LOSS=degrade run "$file" heap timeout -k 5 280 "$BUILD/tests/integration/pmem_odd" heap "$file") >"$TMP/out" 2>&1 &
pid=$!
PIDS="$PIDS $pid"
wait_for 150 gone "$nobody" || fail "it is not tried again: $(cat "$TMP/out")"
SERVE_AT=$SERVE_PORT start_serve
wait_for 150 grep -q "heap: is replicated now" "$TMP/out" || fail "it is not replicated: $(cat "$TMP/out")"
touch "$file.enough"
wait "$pid" || fail "it ends with $?: $(cat "$TMP/out")"
wait_for 10 pool_idle heap || fail "heap is still open"
ctl verify "$file" "$T/heap" >"$TMP/verify.log" 2>&1 || lost "heap: $(cat "$TMP/verify.log" "$TMP/out")"

# One that has interrupted its thread while that waits for the replicas makes durable as much as it will.
file=$TMP/many
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --set on-loss=fail --set op-timeout=40000 \
	--replica "$T/many" --pool "$file" -- timeout -k 5 60 "$BUILD/tests/integration/pmem_odd" many "$file" >"$TMP/out" 2>&1 &
pid=$!
PIDS="$PIDS $pid"
wait_for 20 grep -q open "$TMP/out" || fail "many does not begin: $(cat "$TMP/out")"
sessions=$(for server in $(children "$SERVE_PID"); do children "$server"; done)
signalled STOP $sessions || fail "no session"
: >"$file.go"
status=0
wait_for 20 grep -q handled "$TMP/out" || status=1
kill -CONT $sessions
[ $status -eq 0 ] || fail "no handler amid a drain: $(cat "$TMP/out")"
wait "$pid" || fail "many ends with $?: $(cat "$TMP/out")"
wait_for 10 pool_idle many || fail "many is still open"
cmp "$file" "$TMP/serve/pools/many" >&2 || lost "up to date, and it differs: $(cat "$TMP/out")"
[ "$(cat "$TMP/out")" = $'open\nhandled' ] || fail "many says: $(cat "$TMP/out")"
