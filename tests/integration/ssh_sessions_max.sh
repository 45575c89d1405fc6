# SPDX-License-Identifier: BSD-3-Clause
# repld serve refuses connections beyond sessions-max, says so in the log, and takes new ones again
# when a session has ended.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH" 2
target=$SERVE_USER@127.0.0.1:$SERVE_PORT
for i in 1 2; do
	mkfifo "$TMP/in$i"
	client cat "$target" <"$TMP/in$i" >"$TMP/out$i" &
	eval "pid$i=$!"
done
exec 3>"$TMP/in1" 4>"$TMP/in2"
echo hello >&3
echo hello >&4
wait_for 20 test -s "$TMP/out1" || fail "first session"
wait_for 20 test -s "$TMP/out2" || fail "second session"
expect_error unreachable "127\.0\.0\.1:$SERVE_PORT" client cat "$target"
grep -q "refused: 2 sessions, sessions-max" "$TMP/serve.log" || fail "nothing in the log"
exec 3>&-
wait "$pid1"
wait_for 20 grep -q "has ended" "$TMP/serve.log" || fail "the session does not end"
echo hello | client cat "$target" >"$TMP/out" || fail "no room after the end of a session"
exec 4>&-
wait "$pid2"
