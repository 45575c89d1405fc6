# SPDX-License-Identifier: BSD-3-Clause
# A writer that is at work is not called gone: one that has just come, and one whose session can't say what it does.
. "$(dirname "$0")/api_lib.sh"
start_target
ctl create "$T/p" --size 64K >/dev/null || fail "create"
hold p write

# why_says TEXT: of the writer that is there.
why_says() {
	ctl why "$T/p" >"$TMP/out" || fail "why"
	grep -q "open for writing by holder$1" "$TMP/out" || fail "no '$1' in: $(cat "$TMP/out")"
	grep -q "^reason  *other-writer" "$TMP/out" || fail "$(cat "$TMP/out")"
	# It may be the only one, and the program that is replicated.
	grep -q "^next  *replctl status --watch ${T%%/*} .*only if nobody should write" "$TMP/out" || fail "$(cat "$TMP/out")"
}

why_says ", session"
ctl status "$T" | grep -q "^p  *write" || fail "no session of it: $(ctl status "$T")"

# As of a session of an earlier version, or on a disk without space.
rm -f "$TMP"/serve/pools/.repld/*.json
why_says "; its session does not tell"

signalled KILL "$(session_of p)"
gone_says() {
	ctl why "$T/p" | grep -q "no session says that it has it open for writing; last writer: holder"
}
wait_for 10 gone_says || fail "a writer that was killed: $(ctl why "$T/p")"
