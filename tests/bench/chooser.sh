# SPDX-License-Identifier: BSD-3-Clause
# chooser.sh [CLASS...] - the chosen method against the fastest correct one, and
# compound updates against singletons of the same bytes, on pools of each class
# (memory, page). Answers go to $RESULTS/chooser-CLASS.json; without RESULTS
# they are printed. Ratios, no verdict: nothing fails for being slow.
bench=$(cd "$(dirname "$0")" && pwd)

# One class, on a pool directory below TMPDIR.
if [ "${1-}" = --below ]; then
	. "$bench/../integration/lib.sh"
	. "$bench/pin.sh"
	start_target
	pin_target
	rounds=15 slice_ms=15
	[ -z "${QUICK-}" ] || { rounds=3 slice_ms=2; }
	pinned timeout -k 5 300 "$BUILD/tests/bench/chooser" "$T" "$TMP/key" "$TMP/known_hosts" \
		"$rounds" "$slice_ms" >"$TMP/chooser.json" 2>"$TMP/chooser.err" ||
		fail "chooser: $(cat "$TMP/chooser.err")"
	cp "$TMP/chooser.json" "$2"
	exit 0
fi

[ $# -gt 0 ] || set -- memory page
for class in "$@"; do
	below=/tmp
	[ "$class" = page ] || below=/dev/shm
	answer=${RESULTS:-$(mktemp -d)}/chooser-$class.json
	TMPDIR=$below bash "$0" --below "$answer" || exit 1
	grep -q "\"class\": \"$class\"" "$answer" || {
		printf 'a pool below %s is not of class %s\n' "$below" "$class" >&2
		[ -n "${RESULTS-}" ] && exit 1
	}
	[ -n "${RESULTS-}" ] && continue
	python3 "$bench/report.py" --part chooser "$answer"
	rm -rf "$(dirname "$answer")"
done
