# SPDX-License-Identifier: BSD-3-Clause
# A dry run of what the target would refuse is refused with the same words and exit status.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c 262144 /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null 2>&1 || fail "sync"

# same STATUS ARG...: without and with --dry-run.
same() {
	status=$1
	shift
	ctl_fails "$status" "^next: " "$@"
	mv err real
	ctl_fails "$status" "^next: " "$@" --dry-run
	cmp -s real err || lost "$*: $(cat real); but dry: $(cat err)"
}

hold p write
same 4 remove --force "$T/p"
same 4 sync pool "$T/p"
same 4 sync --force pool "$T/p"
# What a writer leaves that is killed is no writer.
# The connection of a command before it may be without a session by now.
killed=
for connection in $(children "$SERVE_PID"); do
	session=$(children "$connection")
	[ -n "$session" ] && kill -KILL "$session" && killed=yes
done
[ -n "$killed" ] || fail "no session to kill"
dry() {
	ctl "$@" --dry-run >out 2>err
}
wait_for 10 dry sync pool "$T/p" || fail "sync behind a writer that was killed: $(cat err)"
dry remove "$T/p" || fail "remove behind a writer that was killed: $(cat err)"

ctl sync pool "$T/p" >/dev/null || fail "sync again"
ctl promote "$T/p" >/dev/null || fail "promote"
same 4 sync pool "$T/p"
same 4 sync --force pool "$T/p"
dry remove "$T/p" || fail "remove of a primary: $(cat err)"
