# SPDX-License-Identifier: BSD-3-Clause
# remotelog.sh [CLASS...] - replctl bench remotelog on pools of each class (memory,
# page), each side on a core of its own. Answer and plot go to
# $RESULTS/remotelog-CLASS.json and .svg; without RESULTS the answer is printed.
# COUNT appends by each method, else what is sensible for the class.
bench=$(cd "$(dirname "$0")" && pwd)

# One class, on a pool directory below TMPDIR.
if [ "${1-}" = --below ]; then
	. "$bench/../integration/lib.sh"
	. "$bench/pin.sh"
	start_target
	pin_target
	pinned timeout -k 5 1200 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" \
		--json bench remotelog --count "$3" --plot "$2.svg" "$T" \
		</dev/null >"$2.json" 2>"$TMP/err" || fail "bench remotelog: $(cat "$TMP/err")"
	exit 0
fi

[ $# -gt 0 ] || set -- memory page
for class in "$@"; do
	below=/tmp count=20000
	[ "$class" = page ] || { below=/dev/shm count=200000; }
	[ -z "${QUICK-}" ] || count=500
	answer=${RESULTS:-$(mktemp -d)}/remotelog-$class
	TMPDIR=$below bash "$0" --below "$answer" "${COUNT:-$count}" || exit 1
	[ -n "${RESULTS-}" ] && continue
	python3 "$bench/report.py" --part remotelog "$answer.json"
	rm -rf "$(dirname "$answer")"
done
