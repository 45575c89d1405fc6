# SPDX-License-Identifier: BSD-3-Clause
# The session of an initiator that stands still ends after heartbeat-timeout, and its pool is free;
# when it goes on again it is told so, and writes nothing more.
. "$(dirname "$0")/fault.sh"
start_target "heartbeat = 200" "heartbeat-timeout = 2000"
start_victim
ledger_on still.pool >"$TMP/still.out" 2>"$TMP/still.err" &
still_pid=$!
PIDS="$PIDS $still_pid"
wait_for 10 test -s "$TMP/still.out" || fail "the ledger does not start"
signalled STOP "$still_pid"
take_over() {
	{ hello && request pool.open '{"name":"still.pool","mode":"write"}' && request pool.close; } |
		raw_session >"$TMP/out"
	grep -q '"epoch"' "$TMP/out"
}
take_over && fail "taken over before the timeout"
wait_for 20 take_over || fail "the lock is held: $(cat "$TMP/out")"
grep -q "the peer has been silent for 2000 ms" "$TMP/serve.log" || fail "no reason in the log"
sum=$(cksum <"$TMP/serve/pools/still.pool")
kill -CONT "$still_pid"
wait_for 10 gone "$still_pid" || fail "the initiator goes on"
grep -q "ledger: persist: " "$TMP/still.err" || fail "no error but: $(cat "$TMP/still.err")"
[ "$sum" = "$(cksum <"$TMP/serve/pools/still.pool")" ] || lost "it wrote after the takeover"
"$LEDGER" check "$TMP/serve/pools/still.pool" "$(tail -n 1 "$TMP/still.out")" >"$TMP/check" ||
	lost "lost: $(cat "$TMP/check")"
check_victim
