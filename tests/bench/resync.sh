# SPDX-License-Identifier: BSD-3-Clause
# resync.sh [CLASS...] - what a resync moves of 1 % scattered blocks, its rate by
# the journal and directly against bare TCP streams, of a hot buffer and of a file
# as large, and what it does to the persists of a program beside it.
if [ "${1-}" = --below ]; then
	. "$(dirname "$0")/../integration/lib.sh"
	mib=1024 rounds=5
	[ -z "${QUICK-}" ] || { mib=64 rounds=1; }
	# A pool, its journal and the local copy; no more than a third of what is free.
	free=$(($(stat -f -c '%a * %S' "$TMP") >> 20))
	while [ "$mib" -gt 64 ] && [ $((free / 3)) -lt $((mib * 2)) ]; do
		mib=$((mib / 2))
	done
	start_target "journal-max = $((mib * 2))M"
	ctl create "$T/r" --size "${mib}M" >"$TMP/out" 2>"$TMP/err" || fail "create: $(cat "$TMP/err")"
	ctl create "$T/f" --size 1M >"$TMP/out" 2>"$TMP/err" || fail "create: $(cat "$TMP/err")"
	tcp=$("$BUILD/tests/bench/tcp_baseline" 127.0.0.1 100 "$mib" |
		awk '/^stream/ { sub(",", "", $6); printf "%.0f", $6 * 2 ^ 30 }')
	# Of the pool's own file, into one beside it that is there already.
	file=$("$BUILD/tests/bench/tcp_file" "$TMP/serve/pools/r" "$TMP/copy" |
		awk '/^file/ { printf "%.0f", $9 * 2 ^ 30 }')
	rm -f "$TMP/copy"
	timeout -k 5 300 "$BUILD/tests/bench/resync" "$T" "$TMP/key" "$TMP/known_hosts" \
		$((mib << 20)) "$rounds" </dev/null >"$TMP/answer" 2>"$TMP/err" ||
		fail "resync: $(cat "$TMP/err")"
	python3 -c 'import json, sys
a = json.load(open(sys.argv[1]))
a["tcp"] = float(sys.argv[2])
a["tcp_file"] = float(sys.argv[3])
print(json.dumps(a))' "$TMP/answer" "$tcp" "$file" >"$2.json"
	exit 0
fi

. "$(dirname "$0")/classes.sh"
each_class resync "$@"
