# SPDX-License-Identifier: BSD-3-Clause
# What a replica that is not waited for was still to make zero when it died is copied to it when it is back,
# though those that are waited for were settled before.
[ -w /dev/shm ] || exit 77
export TMPDIR=/dev/shm
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve "heartbeat-timeout = 60000"
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

# lags NAME KEY=VALUE...: with the second replica in that role
lags() {
	name=$1
	shift
	rm -f "$TMP/in" "$TMP/said"
	mkfifo "$TMP/in"
	exec 3<>"$TMP/in"
	"$BUILD/tests/integration/log_again" lags "$TMP/$name" "$T/$name-a" "$@" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" lanes=1 heartbeat-timeout=60000 async-lag-time=60000 reconnect-max=100 \
		<"$TMP/in" >"$TMP/said" 2>"$TMP/again.log" &
	program=$!
	PIDS="$PIDS $program"
	wait_for 30 grep -qs filled "$TMP/said" || fail "no log"
	session=$(session_of "$name-b")
	echo "$session" >&3
	wait_for 20 grep -q settled "$TMP/said" || fail "the log does not go on"
	cmp "$TMP/$name" "$TMP/serve/pools/$name-b" && skipped=1
	kill -KILL "$session"
	echo >&3
	wait_for 30 gone "$program" || fail "it does not come back"
	wait "$program" || fail "$(cat "$TMP/again.log")"
	ctl verify "$TMP/$name" "$T/$name-a" >"$TMP/verify.log" 2>&1 || lost "the first replica differs"
	ctl verify "$TMP/$name" "$T/$name-b" >"$TMP/verify.log" 2>&1 || lost "$*: the replica differs"
	rm "$TMP/$name"* "$TMP/serve/pools/$name-"*
}

skipped=0
lags any "target=$T/any-b" ack=any
lags async "async-target=$T/async-b"
[ "$skipped" -eq 0 ] || exit 77
