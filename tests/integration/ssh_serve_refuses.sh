# SPDX-License-Identifier: BSD-3-Clause
# repld serve gives a client with a good key nothing but the subsystem "repl".
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
run_ssh() {
	timeout 10 ssh -F none -p "$SERVE_PORT" -i "$TMP/key" -o BatchMode=yes \
		-o UserKnownHostsFile="$TMP/known_hosts" -o ExitOnForwardFailure=yes "$@" \
		</dev/null >"$TMP/out" 2>"$TMP/err"
}
refused() {
	what=$1
	pattern=$2
	shift 2
	run_ssh "$@"
	status=$?
	[ "$status" -eq 255 ] || fail "$what: status $status: $(cat "$TMP/out" "$TMP/err")"
	[ ! -s "$TMP/out" ] || fail "$what: printed $(cat "$TMP/out")"
	grep -q "$pattern" "$TMP/err" || fail "$what: no '$pattern' in $(cat "$TMP/err")"
}
host=$SERVE_USER@127.0.0.1
run_ssh -s "$host" repl || fail "the subsystem itself: $(cat "$TMP/err")"
refused command "exec request failed" "$host" id
refused shell "shell request failed" -T "$host"
refused pty "PTY allocation request failed" -tt "$host"
refused "another subsystem" "subsystem request failed" -s "$host" sftp
refused "forwarding from here" "open failed" -W "127.0.0.1:$SERVE_PORT" "$host"
refused "forwarding from there" "forwarding failed" -N -R "0:127.0.0.1:$SERVE_PORT" "$host"
refused password "Permission denied (publickey)" -o PubkeyAuthentication=no "$host"

# The environment stays the daemon's.
printf 'environment\n' >"$TMP/ask"
timeout 10 ssh -F none -p "$SERVE_PORT" -i "$TMP/key" -o BatchMode=yes \
	-o UserKnownHostsFile="$TMP/known_hosts" -o SetEnv=SSH_CONNECTION=forged \
	-s "$host" repl <"$TMP/ask" >"$TMP/out" 2>"$TMP/err" || fail "env: $(cat "$TMP/err")"
grep -q "^127\.0\.0\.1 " "$TMP/out" || fail "the client sets the environment: $(cat "$TMP/out")"
