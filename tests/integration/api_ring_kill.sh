# SPDX-License-Identifier: BSD-3-Clause
# Updates that were acknowledged by deposits are in the pool when it is opened after kill -9 of the session, also those that it had not come to.
. "$(dirname "$0")/api_lib.sh"
[ "$(stat -f -c %T "${TMPDIR-/tmp}")" = tmpfs ] || exit 77
# A target that takes its time for each flush, so that kills find something to do.
export REPL_MEDIA_GRANULARITY=byte REPL_MEDIA_DOMAIN=wsp REPL_MEDIA_EVICT=1
REPLD=$BUILD/tests/sim/repld-media
make_keys
start_serve
LOAD=$BUILD/tests/power/power_load
CHECK=$BUILD/tests/power/power_check
KILLS=16

session_pid() {
	sed -n 's/.*repld\[\([0-9]*\)\].* lanes open on .*, with a receive ring/\1/p' \
		"$TMP/serve.log" | tail -n 1
}

# kill_under_load SEED METHOD: from four lanes, at a moment that the seed decides.
kill_under_load() {
	rm -f "$TMP/go" "$TMP/said"
	mkfifo "$TMP/go"
	timeout 30 "$LOAD" "$1" "$TMP/local" "$TMP/journal" "$(pool "p$1")" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" lanes=4 method="$2" \
		<"$TMP/go" >"$TMP/said" 2>"$TMP/load.log" &
	local load=$!

	exec 3>"$TMP/go"
	wait_for 15 grep -q ready "$TMP/said" || fail "seed $1: the load does not start: $(cat "$TMP/load.log")"
	session_pid >&3
	exec 3>&-
	wait "$load" || fail "seed $1: the load failed"
	wait_for 20 no_sessions || fail "the session stays"
}

# brought_in SEED: how many updates the next session has replayed.
brought_in() {
	sed -n "s|.*/p$1': \([0-9]*\) updates of a dead writer brought in.*|\1|p" "$TMP/serve.log"
}

# one SEED METHOD: true if something was left to replay.
one() {
	local sidecar=$TMP/serve/pools/p$1.repl count

	kill_under_load "$1" "$2"
	[ "$(stat -c %s "$sidecar")" -gt 8192 ] || fail "seed $1: there is no ring"
	timeout 20 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" info \
		"$(pool "p$1")" >"$TMP/info.log" 2>&1 || fail "seed $1: $(cat "$TMP/info.log")"
	grep -q 'receive ring.* messages\? not applied' "$TMP/info.log" ||
		fail "seed $1: no ring told of: $(cat "$TMP/info.log")"
	# Any way of opening it will do.
	timeout 20 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" probe \
		"$(pool "p$1")" >"$TMP/probe.log" 2>&1 || fail "seed $1: $(cat "$TMP/probe.log")"
	[ "$(stat -c %s "$sidecar")" = 8192 ] || fail "seed $1: the ring is still there"
	"$CHECK" "$TMP/journal" "$TMP/serve/pools/p$1" >"$TMP/verdict" ||
		lost "$2, seed $1: $(cat "$TMP/verdict")"
	count=$(brought_in "$1")
	[ -n "$count" ] || fail "seed $1: no replay in the log"
	rm -f "$TMP/serve/pools/p$1"* "$TMP"/local* "$TMP/journal"
	echo "$2, seed $1: $count updates brought in"
	[ "$count" -gt 0 ]
}

seed=${API_SEED:-1}
for method in deposit deposit-completion; do
	kills=0
	until one "$seed" "$method"; do
		seed=$((seed + 1)) kills=$((kills + 1))
		[ "$kills" -lt $KILLS ] || fail "$method: nothing was left to replay in $KILLS kills"
	done
	seed=$((seed + 1))
done
