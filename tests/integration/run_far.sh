#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A target that stops answering holds an unmodified program up for no longer than its deadlines say.
. "$(dirname "$0")/run_lib.sh"
WRITE=$BUILD/tests/integration/pmem_write
start_target
# It is not full before the loss is told, be the machine never so quick.
pmempool create obj --layout=far --size=256M "$TMP/far" || fail "pmempool create"

"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --set op-timeout=500 \
	--set close-timeout=500 --replica "$T/far" --pool "$TMP/far" -- "$FILL" \
	stream "$TMP/far" far 200000 >"$TMP/out" 2>"$TMP/err" &
pid=$!
PIDS="$PIDS $pid"
wait_for 30 grep -q '^100$\|^[1-9][0-9][0-9]' "$TMP/out" || fail "does not begin: $(cat "$TMP/err")"
# So many it has for certain: a line that is being written may be cut. On a busy machine it may have been lost before.
had=$(tail -n 2 "$TMP/out" | head -n 1)
ctl wait "$TMP/far" --timeout 20 >"$TMP/wait.out" 2>&1 || fail "wait: $(cat "$TMP/wait.out")"
losses() {
	grep -c "far: REPLICA .* LOST: " "$TMP/err"
}
before=$(losses)
lost_again() {
	[ "$(losses)" -gt "$before" ]
}
session=$(sed -n 's/.*repld\[\([0-9]*\)\].* lanes open on .*/\1/p' "$TMP/serve.log" | tail -n 1)
signalled STOP "$session"
PIDS="$PIDS $session"
wait_for 30 lost_again || fail "no loss is told: $(cat "$TMP/err")"
lines=$(wc -l <"$TMP/out")
more() {
	[ "$(wc -l <"$TMP/out")" -gt $((lines + 20)) ]
}
wait_for 30 more || fail "the program stands still: $(cat "$TMP/err")"
kill "$pid"
wait "$pid" 2>/dev/null
timeout 20 pmempool check "$TMP/far" >"$TMP/check.log" 2>&1 || lost "the local pool: $(cat "$TMP/check.log")"

# What the replica has is what was there when it was lost, and all that it had before; PMDK opens it, its pool being open
# then.
signalled KILL "$session"
restore_pool far "$TMP/far"
expect_count "$TMP/far" far "$had"

# With such a target silent from the start it ends too, and its file is written.
signalled STOP "$SERVE_PID"
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --set op-timeout=500 \
	--set connect-timeout=1000 --replica "$T/silent" --pool "$TMP/silent" -- \
	timeout 40 "$WRITE" pmem "$TMP/silent" >"$TMP/out" 2>&1 || fail "silent: $(cat "$TMP/out")"
signalled CONT "$SERVE_PID"
grep -q "silent: NOT REPLICATED: " "$TMP/out" || fail "not told: $(cat "$TMP/out")"
tr -d '\0' <"$TMP/silent" | grep -q . || fail "nothing is written"
