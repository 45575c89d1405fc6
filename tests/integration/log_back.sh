# SPDX-License-Identifier: BSD-3-Clause
# A replica that comes back while a log is appended to is no further in its tail than in its records: the
# writer dies at once, and the log on the replica is whole.
[ -w /dev/shm ] || exit 77
export TMPDIR=/dev/shm
. "$(dirname "$0")/lib.sh"
BACK=$BUILD/tests/integration/log_back

sessions() {
	for connection in $(children "$SERVE_PID"); do
		children "$connection"
	done
}

no_sessions() {
	[ -z "$(sessions)" ]
}

# back KIND
back() {
	rm -f "$TMP"/p* "$TMP"/copy* "$TMP"/serve/pools/* "$TMP/said"
	"$BACK" run "$1" "$TMP/p" "$T/p" identity="$TMP/key" known-hosts="$TMP/known_hosts" \
		lanes=2 reconnect-max=100 >"$TMP/said" 2>"$TMP/back.log" &
	writer=$!
	PIDS="$PIDS $writer"
	wait_for 20 grep -qs ready "$TMP/said" || fail "no writer"
	sleep 0.1
	kill -KILL $(sessions)
	wait_for 30 gone "$writer" || fail "the replica does not come back"
	wait "$writer" 2>/dev/null
	wait_for 20 no_sessions || fail "the session stays"
	cp "$TMP/serve/pools/p" "$TMP/copy"
	timeout 30 "$BACK" check "$TMP/copy" "$T/copy" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" lanes=1 2>"$TMP/check.log" ||
		lost "kind $1, try $try: the log on the replica is damaged"
}

make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
for try in 1 2; do
	back 2
	back 3
	back 4
done
