# SPDX-License-Identifier: BSD-3-Clause
# A session beyond sessions-max of repld serve is told so, with the next step; of more than some such at once the
# connection is refused, and the log says so. When a session has ended there is room again.
. "$(dirname "$0")/lib.sh"
REPLCTL=$BUILD/replctl
start_target "sessions-max = 2"
hello='{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1]}}'

# begin N: one more session, whose input is descriptor N.
begin() {
	mkfifo "$TMP/in$1"
	client cat "$T" <"$TMP/in$1" >"$TMP/out$1" 3>&- 4>&- 5>&- 6>&- 7>&- &
	eval "exec $1>\"\$TMP/in$1\""
	eval "pid$1=$!"
	echo "$hello" >&"$1"
	wait_for 20 test -s "$TMP/out$1" || fail "session $1 has no answer"
}
for i in 3 4; do
	begin $i
	grep -q '"result"' "$TMP/out$i" || fail "session $i: $(cat "$TMP/out$i")"
done
ctl list "$T" >"$TMP/out" 2>&1 && fail "a third session"
grep -q "2 sessions are open and sessions-max is 2" "$TMP/out" || fail "it says: $(cat "$TMP/out")"
grep -q "^next: raise the limit" "$TMP/out" || fail "it says: $(cat "$TMP/out")"

for i in 5 6 7 8; do
	begin $i
	grep -q '"error"' "$TMP/out$i" || fail "session $i: $(cat "$TMP/out$i")"
done
expect_error unreachable "127\.0\.0\.1:$SERVE_PORT" client cat "$T"
grep -q "refused: 6 sessions, sessions-max is 2" "$TMP/serve.log" || fail "nothing in the log"
exec 3>&- 5>&-
wait "$pid3" "$pid5"
room() {
	ctl list "$T" >"$TMP/out" 2>&1
}
wait_for 20 room || fail "no room after the end of a session: $(cat "$TMP/out")"
exec 4>&- 6>&- 7>&- 8>&-
wait "$pid4" "$pid6" "$pid7" "$pid8"
