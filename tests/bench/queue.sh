# SPDX-License-Identifier: BSD-3-Clause
# queue.sh [CLASS...] - a persist to three replicas with ack = all, quorum and any, and to one
# and an asynchronous one, against a persist to one.
if [ "${1-}" = --below ]; then
	. "$(dirname "$0")/../integration/lib.sh"
	rounds=11 slice_ms=200
	[ -z "${QUICK-}" ] || { rounds=3 slice_ms=20; }
	start_target
	timeout -k 5 300 "$BUILD/tests/bench/queue" "$T" "$TMP/key" "$TMP/known_hosts" \
		"$rounds" "$slice_ms" </dev/null >"$2.json" 2>"$TMP/err" || fail "queue: $(cat "$TMP/err")"
	exit 0
fi

. "$(dirname "$0")/classes.sh"
each_class queue "$@"
