# SPDX-License-Identifier: BSD-3-Clause
# status and probe tell who is at work, with which pool, and by which method.
. "$(dirname "$0")/lib.sh"
start_target
ctl create "$T/p" --size 64K >/dev/null || fail "create"
ctl status "$T" | grep -q "^no session" || fail "an idle target: $(ctl status "$T")"
hold p write
# Sessions tell of themselves once a second.
session_seen() {
	ctl status "$T" >"$TMP/out" && grep -A1 "^p  *write " "$TMP/out" | grep -q "^    by holder"
}
wait_for 20 session_seen || fail "$(cat "$TMP/out")"
ctl status --json "$T" >"$TMP/out" || fail "status --json"
[ "$(member sessions.0.mode <"$TMP/out")" = write ] || fail "mode"
[ "$(member sessions.0.commits_per_s <"$TMP/out")" = 0 ] || fail "rate"
[ "$(member pools.0.writer_open <"$TMP/out")" = True ] || fail "pool"
stop "$HOLD_PID"

ctl probe "$T/p" >"$TMP/out" || fail "probe"
grep -q "^durability-class  *[a-z]" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -q "^atomic 8  *8 B  message  *[a-z0-9]" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -q "^message  *yes  *the target" "$TMP/out" || fail "correct methods: $(cat "$TMP/out")"
grep -q "^deposit  *[a-z]*  *[a-z]" "$TMP/out" || fail "$(cat "$TMP/out")"
[ "$(ctl probe --json "$T" | member persistence-domain.known)" = False ] ||
	fail "a domain that is known without persistent memory"
