# SPDX-License-Identifier: BSD-3-Clause
# A host without repld: the remote complaint and what to do reach the user.
. "$(dirname "$0")/lib.sh"
make_keys
start_sshd
printf '[repld]\npool-dir = %s/none\n' "$TMP" >"$TMP/wrong.conf"
target=$USER_NAME@127.0.0.1:$SSHD_PORT
expect() {
	pattern=$1
	shift
	if echo "{}" | client "$@" >"$TMP/out" 2>"$TMP/err"; then
		fail "no error: $*"
	fi
	grep -Eq -- "$pattern" "$TMP/err" || fail "no '$pattern' in: $(cat "$TMP/err")"
}
expect "^config: .*no-such-repld.*not found.*install repld on 127\.0\.0\.1" \
	-c "no-such-repld session" cat "$target"
expect "^config: .*exit status 126: .*Permission denied: see that the user there may execute repld" \
	-c /dev/null cat "$target"
expect "^lost: .*exit status 3: the disk is gone" \
	-c "echo the disk is gone >&2; exit 3" cat "$target"
expect "^config: .*it refuses to start: .*key 'pool-dir'" \
	-c "'$REPLD' session --config $TMP/wrong.conf" cat "$target"
expect "^lost: .*session ended and has said nothing: was it repld\? see the shell of user '$USER_NAME'" -c true cat "$target"
# As it does of SIGBUS.
expect "^lost: .*could not read or write its pool" -c "exit 11" cat "$target"
# Of what repld has logged only what is wrong.
expect "^lost: .*exit status 3: the disk is full" -c "
	echo '2026-01-01T00:00:00.000Z repld[7] info: session 7: 4 lanes open' >&2
	echo the disk is full >&2; exit 3" cat "$target"
# What a hostile host says stays one line of printable text.
expect "^lost: .*exit status 1: .{100,}" \
	-c "head -c 100000 /dev/zero | tr '\\0' '\\033' >&2; echo x >&2; exit 1" cat "$target"
LC_ALL=C grep -q "$(printf '\033')" "$TMP/err" && fail "control characters came through"
[ "$(wc -l <"$TMP/err")" -eq 1 ] || fail "more than one line"
# Nor are the control characters of 8 bits there, nor what is no character.
expect "^lost: .*exit status 1: a..31mb.c" \
	-c "printf 'a\\302\\23331mb\\377c' >&2; exit 1" cat "$target"
LC_ALL=C grep -q "$(printf '[\200-\377]')" "$TMP/err" && fail "bytes above 127 came through"
# What a shell prints at its start is no answer, nor is there a repld without a configuration.
ctl_by() {
	cat "$TMP/login.conf" - >"$TMP/repl.conf" <<<"command = $1"
	ctl_fails "$2" "$3" -c "$TMP/repl.conf" list "$target"
}
ctl_by "echo Welcome" 1 "127\.0\.0\.1: this is no answer of repld's: .*shell must print nothing.*: 'Welcome'"
ctl_by "echo This account is currently not available." 1 "'This account is currently not available\.'"
[ -e /etc/repld.conf ] || ctl_by "$REPLD session" 10 "no configuration on this target: make /etc/repld.conf"
stop "$SSHD_PID"

# As of an account whose shell it is.
start_sshd "ForceCommand /bin/false"
expect "^lost: .*exit status 1 and has said nothing: was it repld" cat "$USER_NAME@127.0.0.1:$SSHD_PORT"
stop "$SSHD_PID"

start_sshd "ForceCommand exit 127"
expect "^config: .*exit status 127.*install repld" cat "$USER_NAME@127.0.0.1:$SSHD_PORT"
