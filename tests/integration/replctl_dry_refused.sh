# SPDX-License-Identifier: BSD-3-Clause
# A dry run of what the target would refuse, or what is in the way of a restore here, is refused with the same words and
# exit status. What it says to repeat is a dry run.
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
	sed 's/ --dry-run//' err >dry
	cmp -s real dry || lost "$*: $(cat real); but dry: $(cat err)"
}

# repeats COMMAND ARG...: of the dry run that has failed.
repeats() {
	grep -q "^next: .*replctl $*" err || fail "to be repeated: $*; but: $(cat err)"
	! grep -q "goes on where this ended" err || fail "nothing was begun: $(cat err)"
}

# Interrupted once its target is reached. The sanitizers' runtime comes with the program: it is not the first library then.
interrupted() {
	(
		export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
		export LD_PRELOAD="$BUILD/tests/integration/interrupts.so"
		export REPL_CONFIG="$TMP/login.conf"
		exec "$REPLCTL" "$@" </dev/null >out 2>err
	) && fail "$*: not interrupted"
	grep -q "interrupted before anything was copied" err || fail "$*: $(cat err)"
}
interrupted sync --dry-run --force pool "$T/p"
repeats sync --dry-run --force pool "$T/p"
interrupted sync --dry-run pool "$T/none"
repeats sync --dry-run pool "$T/none"

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

# What stands where a restore writes to.
echo precious >victim
ln -s victim file.restoring
same 4 restore "$T/p" file
rm file.restoring
ln victim file.restoring
same 4 restore "$T/p" file
rm file.restoring
cp -p pool file.restoring
exec 9<file.restoring
flock 9
same 4 restore "$T/p" file
repeats restore --dry-run "$T/p" file
ctl_fails 4 "^next: " restore --dry-run --force "$T/p" file
repeats restore --dry-run --force "$T/p" file
exec 9<&-
chmod 640 file.restoring
dry restore "$T/p" file || fail "restore that goes on: $(cat err)"
[ "$(stat -c %a file.restoring)" = 640 ] || fail "a dry run changes its mode"
cmp -s pool file.restoring || lost "a dry run changes it"
[ ! -e file ] && [ "$(cat victim)" = precious ] || lost "a dry run writes"
[ "$(id -u)" -eq 0 ] || { left_out "another user's file needs root"; exit; }
chown 1 file.restoring
same 4 restore "$T/p" file

# In a directory that can't be written to, also where there is something to go on with.
mkdir theirs
cp pool pool.repl theirs
cp pool theirs/pool.restoring
chown nobody key theirs/pool theirs/pool.repl theirs/pool.restoring
printf '#!/bin/sh\nexec setpriv --reuid=nobody --clear-groups "%s" "$@"\n' "$REPLCTL" >as_nobody
chmod 755 as_nobody
REPLCTL=$TMP/as_nobody
same 4 restore --force "$T/p" theirs/pool
rm theirs/pool.restoring
same 4 restore --force "$T/p" theirs/pool
