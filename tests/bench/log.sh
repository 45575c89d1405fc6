# SPDX-License-Identifier: BSD-3-Clause
# log.sh [CLASS...] - an append to a log of each kind against a persist of the same
# bytes, batches against single appends, four writers against one.
if [ "${1-}" = --below ]; then
	. "$(dirname "$0")/../integration/lib.sh"
	. "$(dirname "$0")/pin.sh"
	rounds=21 slice_ms=30
	[ -z "${QUICK-}" ] || { rounds=3 slice_ms=5; }
	start_target
	pin_target
	pinned timeout -k 5 300 "$BUILD/tests/bench/log_append" "$T" "$TMP/key" \
		"$TMP/known_hosts" "$rounds" "$slice_ms" >"$2.json" 2>"$TMP/err" ||
		fail "log_append: $(cat "$TMP/err")"
	exit 0
fi

. "$(dirname "$0")/classes.sh"
each_class log "$@"
