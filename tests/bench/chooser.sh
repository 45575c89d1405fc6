# SPDX-License-Identifier: BSD-3-Clause
# chooser.sh [CLASS...] - the chosen method against the fastest correct one, and
# compound updates against singletons of the same bytes. Ratios, no verdict:
# nothing fails for being slow.
if [ "${1-}" = --below ]; then
	. "$(dirname "$0")/../integration/lib.sh"
	. "$(dirname "$0")/pin.sh"
	rounds=15 slice_ms=15
	[ -z "${QUICK-}" ] || { rounds=3 slice_ms=2; }
	start_target
	pin_target
	pinned timeout -k 5 300 "$BUILD/tests/bench/chooser" "$T" "$TMP/key" "$TMP/known_hosts" \
		"$rounds" "$slice_ms" >"$2.json" 2>"$TMP/err" || fail "chooser: $(cat "$TMP/err")"
	exit 0
fi

. "$(dirname "$0")/classes.sh"
each_class chooser "$@"
