# SPDX-License-Identifier: BSD-3-Clause
# Under sshd too, a session beyond sessions-max is refused with the limit's name and value.
. "$(dirname "$0")/fault.sh"
start_target "sessions-max = 2"
stop "$SERVE_PID"
start_sshd "Subsystem repl $REPLD session --config $TMP/repld.conf"
target=$USER_NAME@127.0.0.1:$SSHD_PORT
for i in 1 2; do
	mkfifo "$TMP/in$i"
	client cat "$target" <"$TMP/in$i" >"$TMP/out$i" &
	PIDS="$PIDS $!"
done
exec 3>"$TMP/in1" 4>"$TMP/in2"
hello >&3
hello >&4
wait_for 20 test -s "$TMP/out1" || fail "first session"
wait_for 20 test -s "$TMP/out2" || fail "second session"
hello | client cat "$target" >"$TMP/out"
expect_answer '"error":.*sessions-max|"error":.*2 sessions' "third session"
exec 3>&-
try() {
	hello | client cat "$target" >"$TMP/out" && grep -q '"result"' "$TMP/out"
}
wait_for 20 try || fail "no room after the end of a session: $(cat "$TMP/out")"
exec 4>&-
