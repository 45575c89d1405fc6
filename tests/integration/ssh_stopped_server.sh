# SPDX-License-Identifier: BSD-3-Clause
# A server that is stopped in mid session is a timeout by the deadline, and closing does not hang;
# one that is killed is a lost connection.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
target=$SERVE_USER@127.0.0.1:$SERVE_PORT

# begin NAME: a session with one answer behind it; its input is descriptor 3.
begin() {
	mkfifo "$TMP/$1.in"
	client -t 1000 cat "$target" <"$TMP/$1.in" >"$TMP/$1.out" 2>"$TMP/$1.err" &
	client_pid=$!
	exec 3>"$TMP/$1.in"
	echo hello >&3
	wait_for 20 test -s "$TMP/$1.out" || fail "no first answer"
	server_pid=$(ps -o pid= --ppid "$SERVE_PID" | tr -d ' ' | tail -n 1)
	[ -n "$server_pid" ] || fail "no process of the connection"
}

begin stopped
signalled STOP "$server_pid"
began=$(date +%s%N)
echo hello >&3
wait "$client_pid" && fail "no error from a stopped server"
took=$((($(date +%s%N) - began) / 1000000))
kill -CONT "$server_pid"
exec 3>&-
grep -q "^timeout: " "$TMP/stopped.err" || fail "not a timeout: $(cat "$TMP/stopped.err")"
[ "$took" -le 3000 ] || fail "took $took ms, not 1000"

begin killed
signalled KILL "$server_pid"
echo hello >&3
wait "$client_pid" && fail "no error from a killed server"
exec 3>&-
grep -q "^lost: " "$TMP/killed.err" || fail "not lost: $(cat "$TMP/killed.err")"
