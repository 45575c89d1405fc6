# SPDX-License-Identifier: BSD-3-Clause
# queue.sh [CLASS...] - a persist to three replicas with ack = all, quorum and any, and to one
# and an asynchronous one, against a persist to one: with waits that poll before they sleep, as by
# default, and with waits that sleep at once.
if [ "${1-}" = --below ]; then
	. "$(dirname "$0")/../integration/lib.sh"
	rounds=11 slice_ms=200
	[ -z "${QUICK-}" ] || { rounds=3 slice_ms=20; }
	make_keys
	for busy_poll in 50 0; do
		start_serve "busy-poll = $busy_poll"
		timeout -k 5 300 "$BUILD/tests/bench/queue" "$SERVE_USER@127.0.0.1:$SERVE_PORT" \
			"$TMP/key" "$TMP/known_hosts" "$rounds" "$slice_ms" "$busy_poll" \
			</dev/null >"$2.$busy_poll" 2>"$TMP/err" || fail "queue: $(cat "$TMP/err")"
		stop "$SERVE_PID"
		rm -rf "$TMP/serve/pools"
	done
	printf '[%s, %s]\n' "$(cat "$2.50")" "$(cat "$2.0")" >"$2.json"
	rm "$2.50" "$2.0"
	exit 0
fi

. "$(dirname "$0")/classes.sh"
each_class queue "$@"
