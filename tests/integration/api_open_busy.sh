# SPDX-License-Identifier: BSD-3-Clause
# A program one of whose replicas another session has, be it the one of a program that was killed, is told who has
# it and what shows the session; the others stay as they are.
. "$(dirname "$0")/api_lib.sh"
start_target
start_api
configure "$T/a" "$T/b"
ok map "$TMP/p" $MIB
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
late=$(session_of b) || fail "no session of b"
signalled STOP "$late"
signalled KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
gone_of_a() {
	! session_of a
}
wait_for 10 gone_of_a || fail "a's session stays"
state_of_a() {
	ctl info --json "$T/a" | grep -E '"(state|generation)":'
}
before=$(state_of_a)
[ -n "$before" ] || fail "info of a"
start_api
configure "$T/a" "$T/b"
ok map "$TMP/p" $MIB
refused REPL_E_BUSY "^$T/b: pool 'b' is open for writing by .* pid [0-9]+; nothing was changed; next: replctl status $T$" open
[ "$(state_of_a)" = "$before" ] || fail "a has changed: $(ctl info "$T/a")"
ctl status "$T" | grep -q "open for writing by" || fail "the next step shows nobody: $(ctl status "$T")"
kill -CONT "$late"
wait_for 20 no_sessions || fail "sessions stay"
ok open
ok compare 1
same
ok close
stop_api
