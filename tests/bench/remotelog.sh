# SPDX-License-Identifier: BSD-3-Clause
# remotelog.sh [CLASS...] - replctl bench remotelog, each side on a core of its own.
# The plot goes beside the answer. COUNT appends by each method, else what is
# sensible for the class.
if [ "${1-}" = --below ]; then
	. "$(dirname "$0")/../integration/lib.sh"
	. "$(dirname "$0")/pin.sh"
	count=200000
	[ "$CLASS" = memory ] || count=20000
	[ -z "${QUICK-}" ] || count=$((count / 400))
	start_target
	pin_target
	pinned timeout -k 5 1200 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" \
		--json bench remotelog --count "${COUNT:-$count}" --plot "$2.svg" "$T" \
		</dev/null >"$2.json" 2>"$TMP/err" || fail "bench remotelog: $(cat "$TMP/err")"
	exit 0
fi

. "$(dirname "$0")/classes.sh"
each_class remotelog "$@"
