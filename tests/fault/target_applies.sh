# SPDX-License-Identifier: BSD-3-Clause
# A journal that a target brings in for ever is waited for no longer than a resync may take, by a
# library and by replctl, and one that has grown there not at all. What is told of the replica
# afterwards holds.
. "$(dirname "$0")/../integration/api_lib.sh"
. "$(dirname "$0")/liar.sh"
cat "$TMP/login.conf" - >"$TMP/repl.conf" <<<$'connect-timeout = 60000\nop-timeout = 20000'
export REPL_CONFIG=$TMP/repl.conf
OP_TIMEOUT=20000
start_api
configure "$T/p"
ok set connect-timeout 60000
ok map "$TMP/file" $MIB
ok put 0 $MIB 1
ok open 1
ok close

# tells TOTAL STATUS PATTERN: the replica has missed something, and this is what it tells of the journal that brings it.
tells() {
	lie '{"method": "hello", "do": "close"}'
	ok set on-loss degrade
	ok open
	ok put 0 4096 "$1"
	ok persist 0 0 4096
	ok close
	lie '{"method": "journal.apply", "count": "done", "members": {"total": '"$1"'}}'
	ok set on-loss fail
	refused "$2" "$3" open
}

ok set resync-timeout 1000
tells 260000 REPL_E_TIMEOUT "not brought up to date within 1000 ms"
ok set resync-timeout 60000
tells 4611686018427387904 REPL_E_PROTOCOL "a journal of 4611686018427387904 bytes"
lie ''
ok open
ok compare 0
same
ok close
stop_api

# replctl is told to end while that goes on.
head -c 1M /dev/urandom >"$TMP/other"
ctl sync "$TMP/other" "$T/other" >/dev/null 2>&1 || fail "no replica"
printf changed | dd of="$TMP/other" conv=notrunc status=none
lie '{"method": "journal.apply", "count": "done", "members": {"total": 260000}}'
ctl_start sync "$TMP/other" "$T/other"
applied() {
	cmp -s "$TMP/other" "$TMP/serve/pools/other"
}
wait_for 20 applied || fail "nothing is applied"
kill -TERM "$CTL_PID"
wait_for 20 gone "$CTL_PID" || fail "it goes on"
! wait "$CTL_PID" || fail "called a success"
lie ''
ctl sync "$TMP/other" "$T/other" >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"
ctl verify "$TMP/other" "$T/other" >"$TMP/out" 2>&1 || lost "$(cat "$TMP/out")"
