# SPDX-License-Identifier: BSD-3-Clause
# After a power cut at any moment a log holds all that was acknowledged and of each writer at most
# its last call, whole or not at all, in order.
#
# usage: log.sh KIND GRANULARITY FIRST-SEED COUNT [drop]
#
# To repeat one: BUILD=build-release bash tests/power/log.sh KIND GRANULARITY SEED 1, with
# REPL_MEDIA_EVICT=SEED if its line says evict. With drop some flushes are left out: the test
# passes as soon as a run shows a loss.
. "$(dirname "$0")/on_disk.sh"
. "$(dirname "$0")/../integration/lib.sh"
kind=$1
first=$3
count=$4
drop=${5-}
export REPL_MEDIA_GRANULARITY="$2"
[ -z "$drop" ] || export REPL_MEDIA_DROP=20
REPLD=$BUILD/tests/sim/repld-media
CUT=$BUILD/tests/sim/media_cut
LOAD=$BUILD/tests/integration/log_load
SIDECAR_SLOTS=8192
lost=0

session_pid() {
	sed -n 's/.*repld\[\([0-9]*\)\].* lanes open on .*/\1/p' "$TMP/serve.log" | tail -n 1
}

load_said() {
	grep -q ready "$TMP/said" || gone "$load"
}

load_and_kill() {
	rm -f "$TMP/go" "$TMP/said" "$TMP/journal"
	mkfifo "$TMP/go"
	timeout -k 1 30 "$LOAD" run "$1" "$TMP/local" "$TMP/journal" "$kind" $(($1 % 4 + 1)) \
		100000 "$T/log$1" identity="$TMP/key" known-hosts="$TMP/known_hosts" lanes=4 \
		<"$TMP/go" >"$TMP/said" 2>"$TMP/load.log" &
	load=$!
	exec 3>"$TMP/go"
	wait_for 15 load_said || fail "seed $1: the load does not start"
	session_pid >&3
	exec 3>&-
	wait "$load" || fail "seed $1: the load failed: $(cat "$TMP/said")"
}

# The machine is up again with what its media hold, and the writers restore that.
check() {
	"$CUT" "$TMP/serve/pools/log$1" 2>"$TMP/cut.log" &&
		"$CUT" "$TMP/serve/pools/log$1.repl" $SIDECAR_SLOTS 2>>"$TMP/cut.log" ||
		fail "the cut"
	rm -f "$TMP"/local*
	ctl restore --force "$T/log$1" "$TMP/local" >"$TMP/restore.log" 2>&1 || lost "restore"
	env -u REPL_MEDIA_DROP timeout 20 "$LOAD" check "$TMP/local" "$TMP/journal" "$T/log$1" \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" >"$TMP/verdict" 2>"$TMP/check.log"
	verdict=$?
	echo "kind $kind, $REPL_MEDIA_GRANULARITY, seed $1${REPL_MEDIA_EVICT:+, evict}:" \
		"$(cat "$TMP/verdict" "$TMP/check.log")"
	[ $verdict -eq 0 ] || lost=$((lost + 1))
	[ $verdict -eq 0 ] || [ -n "$drop" ] || lost "seed $1"
}

# run FROM TO, on a server of their own.
run() {
	start_serve
	T=$SERVE_USER@127.0.0.1:$SERVE_PORT
	seed=$1
	while [ "$seed" -lt "$2" ] && [ $lost -eq 0 ]; do
		load_and_kill "$seed"
		check "$seed"
		rm -f "$TMP"/serve/pools/log* "$TMP"/local*
		seed=$((seed + 1))
	done
	stop "$SERVE_PID"
}

make_keys
half=$((first + count / 2))
[ "$half" -eq "$first" ] || run "$first" "$half"
if [ $lost -eq 0 ]; then
	: "${REPL_MEDIA_EVICT:=$first}"
	export REPL_MEDIA_EVICT
	run "$half" "$((first + count))"
fi
[ -z "$drop" ] || [ $lost -gt 0 ] || fail "nothing was lost in $count runs"
