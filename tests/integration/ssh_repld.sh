# SPDX-License-Identifier: BSD-3-Clause
# repld answers hello in a session under repld serve and under sshd, by subsystem and by command.
. "$(dirname "$0")/lib.sh"
make_keys
hello='{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1]}}'
check_hello() {
	what=$1
	shift
	echo "$hello" | client "$@" >"$TMP/out" 2>"$TMP/err" || fail "$what: $(cat "$TMP/err")"
	grep -q '"version":[[:space:]]*1' "$TMP/out" || fail "$what: answered $(cat "$TMP/out")"
}
start_serve
check_hello "repld serve" cat "$SERVE_USER@127.0.0.1:$SERVE_PORT"
command="$REPLD session --config $TMP/repld.conf"
start_sshd "Subsystem repl $command"
check_hello "sshd, subsystem" cat "$USER_NAME@127.0.0.1:$SSHD_PORT"
stop "$SSHD_PID"
start_sshd
check_hello "sshd, command" -c "$command" cat "$USER_NAME@127.0.0.1:$SSHD_PORT"
echo "command=\"$command\",restrict $(cat "$TMP/key.pub")" >"$TMP/authorized_keys"
check_hello "sshd, forced command" -c "anything" cat "$USER_NAME@127.0.0.1:$SSHD_PORT"
