# SPDX-License-Identifier: BSD-3-Clause
# A pool file that is truncated while it is open ends its session with a word in the log, and no
# other session.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
ledger_on short.pool >"$TMP/short.out" 2>"$TMP/short.err" &
short_pid=$!
PIDS="$PIDS $short_pid"
wait_for 10 test -s "$TMP/short.out" || fail "the ledger does not start"
truncate -s 0 "$TMP/serve/pools/short.pool"
wait_for 10 gone "$short_pid" || fail "the initiator does not notice"
grep -q "ledger: persist: " "$TMP/short.err" || fail "no error but: $(cat "$TMP/short.err")"
wait_for 20 grep -q "file was truncated or its device failed: this session ends, others go on" \
	"$TMP/serve.log" || fail "no reason in the log"
grep -Eq '^[0-9-]+T[0-9:.]+Z repld\[[0-9]+\] error: session [^ ]+ .*: no space is left' "$TMP/serve.log" ||
	fail "nothing tells which session: $(grep truncated "$TMP/serve.log")"
{ hello && request pool.open '{"name":"short.pool","mode":"write"}'; } | raw_session >"$TMP/out"
expect_answer '"status":"corrupt"' "the truncated pool"
check_victim
