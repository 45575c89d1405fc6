# SPDX-License-Identifier: BSD-3-Clause
# A session beyond sessions-max of repld serve is told so, with the next step; of more than some such at once the
# connection is refused, and the log says so. When a session has ended there is room again, and when the limit was
# raised in the file, without a restart; a mistake there is told once and leaves the limit.
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

# limit VALUE: it is another one in the file.
limit() {
	sed -i "s/^sessions-max = .*/sessions-max = $1/" "$TMP/repld.conf"
}
limit 3
ctl list "$T" >"$TMP/out" 2>&1 || fail "raised to 3, a third one: $(cat "$TMP/out")"
limit 1000
python3 -c '
import socket, sys
logins = []
for i in range(60):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.settimeout(60)
    logins.append(s)
for s in logins:
    if s.recv(1) != b"S":
        sys.exit("a login was refused")
for s in logins:
    s.setblocking(False)
    try:
        while s.recv(65536):
            pass
        sys.exit("a login was dropped")
    except BlockingIOError:
        pass
' "$SERVE_PORT" >"$TMP/out" 2>&1 || fail "raised to 1000: $(cat "$TMP/out")"
limit many
for i in 1 2; do
	ctl list "$T" >"$TMP/out" 2>&1 && fail "a session of a configuration that is wrong"
done
[ "$(grep -c "sessions-max stays 1000: .*'many'" "$TMP/serve.log")" -eq 1 ] || fail "the mistake is not told once"
limit 2
exec 3>&- 5>&-
wait "$pid3" "$pid5"
room() {
	ctl list "$T" >"$TMP/out" 2>&1
}
wait_for 20 room || fail "no room after the end of a session: $(cat "$TMP/out")"
exec 4>&- 6>&- 7>&- 8>&-
wait "$pid4" "$pid6" "$pid7" "$pid8"
