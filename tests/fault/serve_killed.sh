# SPDX-License-Identifier: BSD-3-Clause
# A repld serve that is killed takes no session with it: they go on, keep their pools, and a new
# repld serve works beside them.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
signalled KILL "$SERVE_PID"
wait_for 20 gone "$SERVE_PID" || fail "repld serve lives"
wait_for 20 victim_wrote_more "$(($(victim_count) + 10))" || fail "the session has ended"
expect_error unreachable "127\.0\.0\.1:$SERVE_PORT" client cat "$target"
start_serve
target=$SERVE_USER@127.0.0.1:$SERVE_PORT
{ hello && request pool.open '{"name":"victim.pool","mode":"write"}'; } | raw_session >"$TMP/out"
expect_answer '"status":"busy"' "the pool of a session that goes on"
hostile lanes
check_victim
try() {
	{ hello && request pool.open '{"name":"victim.pool","mode":"write"}'; } |
		raw_session >"$TMP/out"
	grep -q '"epoch"' "$TMP/out"
}
wait_for 20 try || fail "the lock outlives the session: $(cat "$TMP/out")"
