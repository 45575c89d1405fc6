# SPDX-License-Identifier: BSD-3-Clause
# dirty.sh [CLASS...] - a persist with after-crash = dirty-map against one with
# after-crash = compare; the same without any replica left, when it is marked only.
if [ "${1-}" = --below ]; then
	. "$(dirname "$0")/../integration/lib.sh"
	. "$(dirname "$0")/pin.sh"
	rounds=11 slice_ms=100
	[ -z "${QUICK-}" ] || { rounds=3 slice_ms=10; }
	start_target
	pin_target
	mkdir "$TMP/local"
	pinned timeout -k 5 300 "$BUILD/tests/bench/dirty" "$T" "$TMP/key" "$TMP/known_hosts" \
		"$rounds" "$slice_ms" "$TMP/local" "$TMP/lost" \
		</dev/null >"$2.json" 2>"$TMP/err" &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 200 test -e "$TMP/lost" || fail "dirty: $(cat "$TMP/err")"
	# The server first, so that nobody comes back.
	sessions=$(for p in $(pgrep -P "$SERVE_PID"); do pgrep -P "$p"; done)
	kill -KILL "$SERVE_PID"
	for p in $sessions; do
		kill -KILL "$p" 2>/dev/null || :
	done
	wait "$pid" || fail "dirty: $(cat "$TMP/err")"
	exit 0
fi

. "$(dirname "$0")/classes.sh"
each_class dirty "$@"
