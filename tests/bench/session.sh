# SPDX-License-Identifier: BSD-3-Clause
# session.sh - what a session costs: opening one against "ssh host true" through
# the same sshd, its memory, and the CPU time of both sides when idle. Lines
# "WHAT VALUE" go to $RESULTS/session. Used by run.sh.
. "$(dirname "$0")/../integration/lib.sh"

rounds=7 idle_s=10
[ -z "$QUICK" ] || { rounds=3 idle_s=3; }
make_keys
mkdir "$TMP/pools"
printf '[repld]\npool-dir = %s\n' "$TMP/pools" >"$TMP/repld.conf"
start_sshd "Subsystem repl $REPLD session --config $TMP/repld.conf"
target=$USER_NAME@127.0.0.1:$SSHD_PORT

replctl() {
	"$BUILD/replctl" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" "$@" \
		>"$TMP/answer" 2>"$TMP/replctl.log" || fail "replctl $*"
}

ssh_true() {
	ssh -F none -i "$TMP/key" -o UserKnownHostsFile="$TMP/known_hosts" -o BatchMode=yes \
		-p "$SSHD_PORT" "$USER_NAME@127.0.0.1" true || fail "ssh"
}

# took WHAT COMMAND...: its wall time in milliseconds.
took() {
	what=$1
	shift
	begin=$(date +%s%N)
	"$@"
	printf '%s %s\n' "$what" $((($(date +%s%N) - begin) / 1000000))
}

ticks() {
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

session_pid() {
	pgrep -f "^$REPLD session --config $TMP/repld.conf" | head -n 1
}

# A session with a pool and lanes open that does nothing.
idle() {
	"$BUILD/tests/bench/idle_session" "$TMP/idle.pool" "$target/idle.pool" \
		"$TMP/key" "$TMP/known_hosts" $((idle_s + 3)) >"$TMP/idle.log" 2>&1 &
	initiator=$!
	PIDS="$PIDS $initiator"
	wait_for 20 grep -q open "$TMP/idle.log" || fail "idle_session does not open"
	sleep 1
	session=$(session_pid)
	mine=$(ticks "$initiator") theirs=$(ticks "$session")
	sleep "$idle_s"
	printf 'idle-initiator-percent %s\n' \
		$((($(ticks "$initiator") - mine) * 100 / idle_s / $(getconf CLK_TCK)))
	printf 'idle-session-percent %s\n' \
		$((($(ticks "$session") - theirs) * 100 / idle_s / $(getconf CLK_TCK)))
	# Without the pool's pages, which are the file's.
	awk '/^RssAnon/ { print "session-anon-kib", $2 }' "/proc/$session/status"
	awk '/^RssFile/ { print "session-file-kib", $2 }' "/proc/$session/status"
	wait "$initiator" || fail "idle_session"
}

opening() {
	took ssh-true-ms ssh_true
	took replctl-list-ms replctl list "$target"
}

opening >/dev/null
{
	i=0
	while [ "$i" -lt "$rounds" ]; do
		opening
		i=$((i + 1))
	done
	idle
} >"$RESULTS/session"
