#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A signal handler that persists and has interrupted malloc(3) waits for no memory when the replicas are tried again.
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
