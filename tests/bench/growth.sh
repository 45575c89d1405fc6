# SPDX-License-Identifier: BSD-3-Clause
# growth.sh [CLASS...] - opening a sparse pool of 1 TiB against one of 4 MiB, and what
# the target's session pins of it; the longest persist on four lanes while their
# pool grows by 1 GiB, that of 1 TiB and one whose space is allocated, against the longest without.
if [ "${1-}" = --below ]; then
	. "$(dirname "$0")/../integration/lib.sh"
	. "$(dirname "$0")/pin.sh"
	rounds=7 growths=3 sparse_growths=15 bytes=$((1 << 30)) huge=$((1 << 40))
	[ -z "${QUICK-}" ] || { rounds=1 growths=1 sparse_growths=1 bytes=$((64 << 20)); }
	start_target
	growth="timeout -k 5 300 $BUILD/tests/bench/growth"

	# Space below a directory, which a growth must leave some of.
	free=$(($(stat -f -c '%a * %S' "$TMP")))
	while [ "$growths" -gt 1 ] && [ $((free / 2)) -lt $((bytes * growths)) ]; do
		growths=$((growths - 1))
	done
	[ $((free / 2)) -ge $((bytes * growths)) ] || bytes=$((64 << 20))

	# One that an opening makes it also fills.
	for args in "$T/huge --size $huge" "$T/growth-small --size $((4 << 20))"; do
		# shellcheck disable=SC2086 # the words of a command line
		ctl create $args --sparse >"$TMP/out" 2>"$TMP/err" || fail "create: $(cat "$TMP/err")"
	done
	mkfifo "$TMP/hold"
	$growth open "$T" "$TMP/key" "$TMP/known_hosts" "$rounds" huge "$huge" \
		<"$TMP/hold" >"$TMP/open.json" 2>"$TMP/err" &
	pid=$!
	PIDS="$PIDS $pid"
	exec 9>"$TMP/hold"
	wait_for 60 grep -q open "$TMP/open.json" || fail "growth open: $(cat "$TMP/err")"
	session=$(pgrep -P "$(pgrep -P "$SERVE_PID" | tail -n 1)")
	awk '/^Vm(Lck|Pin|RSS)/ { print $1, $2 }' "/proc/$session/status" >"$TMP/memory"
	exec 9>&-
	wait "$pid" || fail "growth open: $(cat "$TMP/err")"
	$growth grow "$T" "$TMP/key" "$TMP/known_hosts" "$growths" "$bytes" \
		</dev/null >"$TMP/grow.json" 2>"$TMP/err" || fail "growth grow: $(cat "$TMP/err")"
	$growth grow "$T" "$TMP/key" "$TMP/known_hosts" "$sparse_growths" $((1 << 30)) huge "$huge" \
		</dev/null >"$TMP/sparse.json" 2>"$TMP/err" || fail "growth of a sparse pool: $(cat "$TMP/err")"
	python3 - "$TMP/open.json" "$TMP/memory" "$TMP/grow.json" "$TMP/sparse.json" >"$2.json" <<'PY'
import json, sys
a = json.load(open(sys.argv[1]))
for path in sys.argv[3:]:
    a.update(json.load(open(path)))
a["kib"] = {k.rstrip(":"): int(v) for k, v in (l.split() for l in open(sys.argv[2]))}
print(json.dumps(a))
PY
	exit 0
fi

. "$(dirname "$0")/classes.sh"
each_class growth "$@"
