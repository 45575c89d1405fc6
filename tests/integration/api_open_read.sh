# SPDX-License-Identifier: BSD-3-Clause
# A replica that somebody reads, as a restore does for as long as it takes, keeps no program from opening its pool: that goes on
# without it, by on-loss, knows what keeps it away, and has it back when that has ended. One that may not go on without is
# refused, and so is one whose pool was never replicated.
. "$(dirname "$0")/api_lib.sh"
start_target
start_api
prepare() {
	configure "$T/a" "$T/b"
	ok set on-loss "$1"
	ok set reconnect-min 100
	ok set reconnect-max 200
}
# why REASON: it is that, for wait_for.
why() {
	ctl why "$TMP/p" >"$TMP/why" 2>&1 && grep -q "^reason  *$1: " "$TMP/why"
}
# ended: nobody writes to b any more.
ended() {
	! session_of b >/dev/null
}
by_reader="^$T/b: pool 'b' is in use by another session that reads it, .*; next: replctl status $T$"
prepare degrade
ok map "$TMP/p" $MIB
ctl create "$T/b" --size 1M >/dev/null || fail "create"
hold b stable
refused REPL_E_BUSY "$by_reader" open 1
stop "$HOLD_PID"
wait_for 20 no_sessions || fail "b is still read"
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
ok close

hold b stable
prepare fail
refused REPL_E_BUSY "$by_reader" open
prepare degrade
ok open
ok stat 0
is replication 0
ok stat 1
is replication 2
is data 2
wait_for 20 why being-read || fail "not told what keeps it away: $(cat "$TMP/why")"
grep -q "^next  *replctl status $T; " "$TMP/why" || fail "the next step: $(cat "$TMP/why")"
ok put 0 4096 2
ok persist 0 0 4096
stop "$HOLD_PID"
wait_for 20 established 1 || fail "it does not come back: $TEXT"
ok compare 1
same

# The same of one that comes back to a program that runs.
ctl pause "$TMP/p" "$T/b" >/dev/null || fail "pause"
wait_for 20 ended || fail "the paused one's session stays"
hold b stable
ctl resume "$TMP/p" "$T/b" >/dev/null || fail "resume"
wait_for 20 why being-read || fail "not told what keeps it away: $(cat "$TMP/why")"
ok put 0 4096 3
ok persist 0 0 4096
stop "$HOLD_PID"
wait_for 20 established 1 || fail "it does not come back: $TEXT"
ok compare 1
same
ok close
stop_api
equal "$TMP/p" "$TMP/serve/pools/a"
equal "$TMP/p" "$TMP/serve/pools/b"
