#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A first copy that is cut off is gone on with soon, however long it has taken, and the program is told when.
. "$(dirname "$0")/run_lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far
# 4 MB a second.
tc qdisc add dev "rf$$" root tbf rate 32mbit burst 64kb latency 400ms 2>"$TMP/tc.log" || exit 77
file=$TMP/cut
head -c 20M /dev/urandom >"$file"

"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --set on-loss=degrade --set connect-timeout=300 \
	--replica "$FAR_TARGET/cut" --pool "$file" -- timeout -k 5 200 "$BUILD/tests/integration/pmem_odd" goeson "$file" \
	>"$TMP/out" 2>&1 &
pid=$!
PIDS="$PIDS $pid"
sent() {
	[ "$(cat "/sys/class/net/rf$$/statistics/tx_bytes")" -gt 8000000 ]
}
# Two seconds at least.
wait_for 60 sent || fail "it does not begin: $(cat "$TMP/out")"
session=$(sed -n 's/.*repld\[\([0-9]*\)\].* lanes open on .*/\1/p' "$TMP/serve.log" | tail -n 1)
signalled KILL "$session" || fail "no session"
wait_for 10 grep -q "/cut: NOT REPLICATED, tried again in 6 s: " "$TMP/out" || fail "it says: $(cat "$TMP/out")"
wait_for 60 grep -q "/cut: is replicated now" "$TMP/out" || fail "it is not replicated: $(cat "$TMP/out")"
: >"$file.enough"
wait "$pid" || fail "it ends with $?: $(cat "$TMP/out")"
cmp "$file" "$TMP/serve/pools/cut" >&2 || lost "up to date, and it differs"
