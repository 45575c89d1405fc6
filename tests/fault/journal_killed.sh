# SPDX-License-Identifier: BSD-3-Clause
# A target that is killed while a journal is filled, committed or applied, has the pool of before or that
# of after when it is opened next; after, if the commit was answered.
# usage: journal_killed.sh [SEED [KILLS [media|set]]]
# With media the machine stops, too: of the pool only what was flushed is left. With set the pool is the
# part of a pool set that has a local replica.
. "$(dirname "$0")/fault.sh"
SEED=${1:-$$}
KILLS=${2:-12}
STAGE_LOAD=$BUILD/tests/fault/stage_load
POOL=$TMP/serve/pools/p
SIZE=$((8 << 20))
MEDIA=${3-}
RANDOM=$SEED
SET=
if [ "$MEDIA" = set ]; then
	MEDIA= SET=yes POOL=$POOL.part
fi
if [ -n "$MEDIA" ]; then
	REPLD=$BUILD/tests/sim/repld-media
	export REPL_MEDIA_GRANULARITY=page REPL_MEDIA_DOMAIN=dmp REPL_MEDIA_DDIO=on
fi
echo "seed $SEED"
start_target
[ -z "$SET" ] ||
	printf '%s\n' PMEMPOOLSET "OPTION NOHDRS" "8M p.part" REPLICA "8M p.copy" >"$TMP/serve/pools/p"

load() {
	mode=$1
	shift
	timeout 60 "$STAGE_LOAD" -i "$TMP/key" -k "$TMP/known_hosts" "$mode" "$target/p" "$@"
}

# The number in the last line that begins with the word, 0 if there is none.
last() {
	sed -n "s/^$1 //p" "$TMP/load.out" | tail -n 1 | grep . || echo 0
}

# The daemon's child has the connection, the child of that one the session.
session_pid() {
	connection=$(ps -o pid= --ppid "$SERVE_PID" | tail -n 1 | tr -d ' ')
	[ -z "$connection" ] || ps -o pid= --ppid "$connection" | tail -n 1 | tr -d ' '
}

begun() {
	[ "$(last began)" -ge "$1" ]
}

round=0
inside=0
kill=0
# More of them where the moment was the same each time.
while [ $kill -lt "$KILLS" ] || { [ $inside -eq $kill ] && [ $kill -lt $((5 * KILLS)) ]; }; do
	kill=$((kill + 1))
	: >"$TMP/load.out"
	load rounds "$SIZE" 100000 $((SEED + kill)) $((round + 1)) >"$TMP/load.out" 2>"$TMP/load.log" &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 20 begun $((round + 1 + RANDOM % 3)) || fail "no round begins"
	victim=$(session_pid)
	[ -n "$victim" ] || fail "no session's process"
	# Anywhere in a round, which takes a few ten milliseconds.
	sleep "0.0$((RANDOM % 50 + 10))"
	signalled KILL "$victim"
	wait "$pid" || fail "the initiator: $(cat "$TMP/load.log")"
	committed=$(last committed)
	[ "$committed" -ge "$round" ] || committed=$round
	[ "$(last began)" -gt "$committed" ] || inside=$((inside + 1))
	# Of the sidecar its slots are written and synced; a journal is, too, behind what is mapped.
	[ -z "$MEDIA" ] || {
		"$BUILD/tests/sim/media_cut" "$POOL" 2>"$TMP/cut.log" &&
			"$BUILD/tests/sim/media_cut" "$POOL.repl" 8192 2>>"$TMP/cut.log"
	} || fail "the cut"
	load check "$POOL" "$committed" >"$TMP/check.out" 2>&1 ||
		lost "kill $kill, round $committed committed: $(cat "$TMP/check.out")"
	round=$(sed -n 's/^round //p' "$TMP/check.out")
	[ "$round" -le "$(last began)" ] || lost "round $round was not begun"
done
echo "$kill kills, $inside behind a commit, $round rounds"
[ "$inside" -lt "$kill" ] || fail "no kill was amid a round"
if [ -n "$SET" ]; then
	load rounds "$SIZE" 1 "$SEED" $((round + 1)) >"$TMP/load.out" 2>"$TMP/load.log" || fail "$(cat "$TMP/load.log")"
	cmp "$POOL" "$TMP/serve/pools/p.copy" || lost "the local replica differs"
fi
! grep 'inconsistent' "$TMP/serve.log" || lost "a journal was damaged"
