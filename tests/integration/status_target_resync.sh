# SPDX-License-Identifier: BSD-3-Clause
# While a program brings a replica up to date its target tells so, and not that a stranger writes to it who is to be
# ended.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve "heartbeat = 100"
start_api
configure "$(pool p)"
ok set lanes 1
ok set reconnect-min 50
ok set reconnect-max 100
# So that it can be looked at.
ok set resync-rate 64K
ok map "$TMP/p" $((4 * MIB))
ok open 1
port=$SERVE_PORT
hurt serve
ok put 0 $((2 * MIB)) 1
ok persist 0 0 $((2 * MIB))
SERVE_AT=$port
start_serve "heartbeat = 100"
resyncing() {
	ctl why "$(pool p)" >"$TMP/why" && grep -q "^reason *resyncing" "$TMP/why"
}
wait_for 10 resyncing || fail "$(cat "$TMP/why")"
grep -q "it says: connected, resyncing, outdated" "$TMP/why" || fail "$(cat "$TMP/why")"
# Later words have how far it is.
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
goes_on() {
	ctl status --json "$T" >"$TMP/status" &&
		[ "$(member sessions.0.report.resync_total <"$TMP/status")" -ge $((2 * MIB)) ]
}
wait_for 10 goes_on || fail "$(cat "$TMP/status")"
ok close
stop_api
