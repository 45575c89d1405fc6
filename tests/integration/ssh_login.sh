# SPDX-License-Identifier: BSD-3-Clause
# A listed key opens a session, by subsystem or by command, under sshd and under repld serve.
. "$(dirname "$0")/lib.sh"
make_keys

start_sshd "Subsystem repl /bin/cat"
target=$USER_NAME@127.0.0.1:$SSHD_PORT
[ "$(echo hello | client cat "$target")" = hello ] || fail "subsystem under sshd"
[ "$(client peer "$target")" = 127.0.0.1 ] || fail "address of the peer"
stop "$SSHD_PID"

start_sshd
target=$USER_NAME@127.0.0.1:$SSHD_PORT
[ "$(echo hello | client -c cat cat "$target")" = hello ] || fail "command under sshd"

start_serve_with "$SERVE_WITH"
target=$SERVE_USER@127.0.0.1:$SERVE_PORT
[ "$(echo hello | client cat "$target")" = hello ] || fail "subsystem under repld serve"
echo environment | client cat "$target" >"$TMP/out" || fail "SSH_CONNECTION"
grep -Eq "^127\.0\.0\.1 [0-9]+ 127\.0\.0\.1 $SERVE_PORT$" "$TMP/out" ||
	fail "SSH_CONNECTION is $(cat "$TMP/out")"
