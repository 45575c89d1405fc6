# SPDX-License-Identifier: BSD-3-Clause
# After a power cut at any moment every acknowledged update is on the media, no pair's b is there
# without its a, and no eight atomic bytes are torn.
#
# usage: cut.sh page|cache_line|byte FIRST-SEED COUNT [DROP]
#
# Half of the seeds run with lines written back before their time. To repeat one:
#   BUILD=build-debug bash tests/power/cut.sh page SEED 1
# With DROP every DROP-th range is not flushed, and the test passes if each run shows a loss.
. "$(dirname "$0")/../integration/lib.sh"
granularity=$1
first=$2
count=$3
drop=${4-}
REPLD=$BUILD/tests/sim/repld-media
LOAD=$BUILD/tests/power/power_load
CHECK=$BUILD/tests/power/power_check
REPLCTL=$BUILD/replctl
export REPL_MEDIA_GRANULARITY="$granularity"
[ -z "$drop" ] || export REPL_MEDIA_DROP="$drop"

session_pid() {
	sed -n 's/.*repld\[\([0-9]*\)\].* lanes open on .*/\1/p' "$TMP/serve.log" | tail -n 1
}

cut_once() {
	pool=p$1
	rm -f "$TMP/go" "$TMP/said"
	mkfifo "$TMP/go"
	timeout 30 "$LOAD" "$1" "$TMP/local" "$TMP/journal" "$SERVE_USER@127.0.0.1:$SERVE_PORT/$pool" \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" lanes=4 \
		<"$TMP/go" >"$TMP/said" 2>"$TMP/load.log" &
	load=$!
	exec 3>"$TMP/go"
	wait_for 15 grep -q ready "$TMP/said" || fail "seed $1: the load does not start"
	session_pid >&3
	exec 3>&-
	wait "$load" || fail "seed $1: the load failed"
	"$CHECK" "$TMP/journal" "$TMP/serve/pools/$pool.media" >"$TMP/verdict"
	verdict=$?
	echo "$granularity, seed $1${REPL_MEDIA_EVICT:+, evict}${drop:+, drop $drop}:" \
		"$(tail -n 1 "$TMP/verdict")"
	if [ -z "$drop" ] && [ $verdict -ne 0 ]; then
		fail "seed $1: $(cat "$TMP/verdict")"
	elif [ -n "$drop" ] && [ $verdict -ne 1 ]; then
		fail "seed $1: no loss seen though every $drop. range was not flushed"
	fi
}

# The machine is up again, with what its media hold: that is what a restore gives back.
restore_check() {
	mv "$TMP/serve/pools/p$1.media" "$TMP/serve/pools/p$1"
	timeout 20 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" restore --force \
		"$SERVE_USER@127.0.0.1:$SERVE_PORT/p$1" "$TMP/restored" >"$TMP/restore.log" 2>&1 ||
		fail "seed $1: restore"
	"$CHECK" "$TMP/journal" "$TMP/restored" >"$TMP/verdict" ||
		fail "seed $1, restored: $(cat "$TMP/verdict")"
	rm -f "$TMP/restored"*
}

# run FROM TO, on a server of their own.
run() {
	start_serve
	seed=$1
	while [ "$seed" -lt "$2" ]; do
		cut_once "$seed"
		[ -n "$drop" ] || [ "$seed" -ne "$1" ] || restore_check "$seed"
		rm -f "$TMP/serve/pools/p$seed"* "$TMP/local"*
		seed=$((seed + 1))
	done
	stop "$SERVE_PID"
}

make_keys
half=$((first + (count + 1) / 2))
run "$first" "$half"
export REPL_MEDIA_EVICT="$first"
run "$half" "$((first + count))"
