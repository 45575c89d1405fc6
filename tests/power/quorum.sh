# SPDX-License-Identifier: BSD-3-Clause
# With ack = quorum of three, power cuts of one target, then of a second one, under load: every acknowledged
# update is on the media of two, and on each no pair's b is there without its a. The one of them that
# replctl newest names has all of it. Some seeds kill all three at once: then their positions decide.
#
# usage: quorum.sh page|cache_line FIRST-SEED COUNT [drop]
#
# With drop every third flush is left out: the test passes as soon as a run shows a loss.
. "$(dirname "$0")/on_disk.sh"
. "$(dirname "$0")/../integration/lib.sh"
export REPL_MEDIA_GRANULARITY="$1" REPL_MEDIA_DOMAIN=dmp REPL_MEDIA_DDIO=on
seed=$2
end=$(($2 + $3))
drop=${4-}
if [ -n "$drop" ]; then
	export REPL_MEDIA_DROP=3 REPL_MEDIA_NAP_US=4000
fi
REPLD=$BUILD/tests/sim/repld-media
SIDECAR_SLOTS=8192

# Which session has which pool: they are named in no log.
session_of() {
	for pid in $(pgrep -P "$SERVE_PID"); do
		for session in $(pgrep -P "$pid"); do
			grep -q "/$1$" "/proc/$session/maps" && echo "$session" && return
		done
	done
	return 1
}

load_said() {
	grep -q ready "$TMP/said" || gone "$load"
}

# Nothing is left of a pool but what the media hold of it.
power_cut() {
	"$BUILD/tests/sim/media_cut" "$TMP/serve/pools/$1" 2>"$TMP/cut.log" &&
		"$BUILD/tests/sim/media_cut" "$TMP/serve/pools/$1.repl" $SIDECAR_SLOTS \
			2>>"$TMP/cut.log" || fail "the cut of $1: $(cat "$TMP/cut.log")"
}

# The round log of a page cache is brought in by who opens the pool, durably.
opened() {
	timeout 20 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" probe \
		"$SERVE_USER@127.0.0.1:$SERVE_PORT/$1" >"$TMP/probe.log" 2>&1 ||
		fail "opening $1: $(cat "$TMP/probe.log")"
	power_cut "$1"
}

# The primary is gone: the name of the one to take.
chosen() {
	at=$SERVE_USER@127.0.0.1:$SERVE_PORT
	ctl newest --json "$at/a" "$at/b" "$at/c" >"$TMP/newest" 2>&1 || return 1
	sed -n 's|.*"newest": *"[^"]*/\([abc]\)".*|\1|p' "$TMP/newest" | grep .
}

cut_once() {
	rm -f "$TMP/go" "$TMP/said"
	mkfifo "$TMP/go"
	at=$SERVE_USER@127.0.0.1:$SERVE_PORT
	timeout 60 "$BUILD/tests/power/power_load" "$1" "$TMP/local" "$TMP/journal" "$at/a" \
		target="$at/b" target="$at/c" ack=quorum identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" lanes=4 reconnect-min=3600000 op-timeout=20000 \
		heartbeat-timeout=10000 <"$TMP/go" >"$TMP/said" 2>"$TMP/load.log" &
	load=$!
	exec 3>"$TMP/go"
	wait_for 30 load_said || fail "seed $1: the load does not start"
	grep -q ready "$TMP/said" || fail "seed $1: the load ends: $(cat "$TMP/load.log")"
	pids="$(session_of a) $(session_of b) $(session_of c)"
	set -- "$1" $pids
	[ $# = 4 ] || fail "seed $1: no sessions: $pids"
	# Another one first each time.
	case $(($1 % 3)) in
	0) echo "$2 $3 $4" >&3 ;;
	1) echo "$3 $4 $2" >&3 ;;
	2) echo "$4 $2 $3" >&3 ;;
	esac
	exec 3>&-
	wait "$load" || fail "seed $1: the load failed: $(cat "$TMP/load.log")"
	for pool in a b c; do
		power_cut "$pool"
	done
	[ -n "$drop" ] || take=$(chosen) || lost "seed $1: none is chosen: $(cat "$TMP/newest")"
	for pool in a b c; do
		[ "$REPL_MEDIA_GRANULARITY" != page ] || opened "$pool"
	done
	"$BUILD/tests/power/power_check" "$TMP/journal" "$TMP"/serve/pools/[abc] >"$TMP/verdict"
	verdict=$?
	[ $verdict -le 1 ] || lost "seed $1: $(cat "$TMP/verdict")"
	echo "quorum, seed $1${drop:+, drop}: $(tail -n 1 "$TMP/verdict")"
	[ -z "$drop" ] || return 0
	"$BUILD/tests/power/power_check" "$TMP/journal" "$TMP/serve/pools/$take" >"$TMP/verdict" ||
		lost "seed $1: $take was to be taken and lacks what was acknowledged: $(cat "$TMP/verdict")"
	verdict=0
}

make_keys
lost=0
while [ "$seed" -lt "$end" ] && [ "$lost" -eq 0 ]; do
	start_serve
	cut_once "$seed"
	[ "$verdict" -eq 0 ] || [ -n "$drop" ] || lost "seed $seed: $(cat "$TMP/verdict")"
	lost=$verdict
	stop "$SERVE_PID"
	rm -rf "$TMP/serve/pools" "$TMP"/local*
	seed=$((seed + 1))
done
[ -z "$drop" ] || [ "$lost" -gt 0 ] || fail "nothing was lost in $3 runs"
