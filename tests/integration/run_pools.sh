#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Of two pools in one program each is used as if the other one were not there: a fork that waits for one that is being opened
# holds up nobody who persists in the other, nor does one's target that has stopped those whom the program serves the other; and
# one that is closed is not waited for by those who lose a replica of it.
. "$(dirname "$0")/run_lib.sh"
start_target

# pools MODE TARGET OPTION...: becomes the program, whose second pool goes to that target.
pools() {
	mode=$1
	second=$2
	shift 2
	exec "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run "$@" --replica "$T/$mode" \
		--pool "$TMP/$mode" --replica "$second/$mode.2" --pool "$TMP/$mode.2" -- \
		timeout -k 5 60 "$BUILD/tests/integration/pmem_pools" "$mode" "$TMP/$mode"
}

# Nobody is there, and then somebody who says nothing.
port=$(free_port)
: >"$TMP/forks.second"
(pools forks "nobody@127.0.0.1:$port" --set on-loss=degrade --set connect-timeout=8000) >"$TMP/out" 2>&1 &
program=$!
PIDS="$PIDS $program"
wait_for 10 grep -q "/forks.2: NOT REPLICATED" "$TMP/out" || fail "forks: $(cat "$TMP/out")"
python3 -c '
import socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
c = s.accept()
open(sys.argv[2], "w").close()
s.accept()' "$port" "$TMP/forks.go" &
PIDS="$PIDS $!"
wait $program || fail "forks ends with $?: $(cat "$TMP/out")"

(pools serves "$T" --set on-loss=block) >"$TMP/serves.out" 2>&1 &
program=$!
PIDS="$PIDS $program"
wait_for 10 grep -q first "$TMP/serves.out" || fail "serves: $(cat "$TMP/serves.out")"
sessions=$(for pid in $(children "$SERVE_PID"); do children "$pid"; done)
: >"$TMP/serves.second"
wait_for 10 grep -q second "$TMP/serves.out" || fail "serves: $(cat "$TMP/serves.out")"
signalled STOP $sessions || fail "no session"
: >"$TMP/serves.go"
status=0
wait_for 50 grep -qx on "$TMP/serves.out" || status=1
kill -CONT $sessions
[ $status -eq 0 ] || fail "serves: $(cat "$TMP/serves.out")"
wait $program || fail "serves ends with $?: $(cat "$TMP/serves.out")"

(pools closes "$T" --set ack=quorum --replica "$T/closes.b" --replica "$T/closes.c") >"$TMP/closes.out" 2>&1 &
program=$!
PIDS="$PIDS $program"
: >"$TMP/closes.second"
wait_for 10 grep -q second "$TMP/closes.out" || fail "closes: $(cat "$TMP/closes.out")"
session=$(for pid in $(children "$SERVE_PID"); do children "$pid"; done | while read -r pid; do
	grep -q "/closes.c$" "/proc/$pid/maps" && echo "$pid"
done)
signalled STOP "$session" || fail "no session"
: >"$TMP/closes.go"
status=0
wait_for 30 gone $program || status=1
kill -CONT "$session"
[ $status -eq 0 ] || fail "closes does not end: $(cat "$TMP/closes.out")"
wait $program || fail "closes ends with $?: $(cat "$TMP/closes.out")"
