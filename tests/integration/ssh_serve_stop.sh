# SPDX-License-Identifier: BSD-3-Clause
# SIGTERM ends repld serve and its sessions with status 0, and the port can be listened on again
# at once; SIGHUP does nothing.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
mkfifo "$TMP/in"
client cat "$SERVE_USER@127.0.0.1:$SERVE_PORT" <"$TMP/in" >"$TMP/out" 2>"$TMP/err" &
client_pid=$!
exec 3>"$TMP/in"
echo hello >&3
wait_for 20 test -s "$TMP/out" || fail "no session"
kill -HUP "$SERVE_PID"
sleep 0.2
kill -0 "$SERVE_PID" || fail "SIGHUP ended it"
kill -TERM "$SERVE_PID"
wait "$SERVE_PID"
status=$?
[ "$status" -eq 0 ] || fail "status $status after SIGTERM"
echo hello >&3
wait "$client_pid" && fail "the session outlived repld serve"
exec 3>&-

"$SERVE_WITH" "127.0.0.1:$SERVE_PORT" "$TMP/serve2_key" "$TMP/authorized_keys" /bin/cat 1 \
	>"$TMP/root.log" 2>&1 &
second=$!
if [ "$(id -u)" -eq 0 ]; then
	wait "$second" && fail "it serves as root"
	grep -q "does not serve as root: set 'user'" "$TMP/root.log" || fail "no text for root"
else
	PIDS="$PIDS $second"
	wait_for 20 grep -q "listening on 127.0.0.1:$SERVE_PORT" "$TMP/root.log" ||
		fail "the port is blocked"
fi
