# SPDX-License-Identifier: BSD-3-Clause
# After a power cut in the middle of appends the media hold every append that was acknowledged and at
# most the one in flight: whole records up to the tail word, no gap, no byte beyond what is durable.
#
# usage: append.sh GRANULARITY FIRST-SEED COUNT [drop]
#
# Four lanes append records of one byte's value each; after a number of records that the seed decides
# the session is killed and the media take the pool's place. Odd seeds run with lines written back
# before their time. With drop every fifth range is not flushed: passes as soon as that shows.
. "$(dirname "$0")/on_disk.sh"
. "$(dirname "$0")/../integration/lib.sh"
REPL_MEDIA_GRANULARITY=$1
export REPL_MEDIA_GRANULARITY
first=$2
count=$3
drop=${4-}
[ -z "$drop" ] || export REPL_MEDIA_DROP=5
REPLD=$BUILD/tests/sim/repld-media
CUT=$BUILD/tests/sim/media_cut
SIDECAR_SLOTS=8192
lost=0

tail_past() {
	[ "$(od -A n -t u8 -j 64 -N 8 "$TMP/local" | tr -d ' ')" -gt "$1" ]
}

session_pid() {
	sed -n 's/.*repld\[\([0-9]*\)\].* lanes open on .*/\1/p' "$TMP/serve.log" | tail -n 1
}

commands() {
	echo config
	echo "set identity $TMP/key"
	echo "set known-hosts $TMP/known_hosts"
	echo "set on-loss fail"
	echo "set lanes 4"
	echo "set target $SERVE_USER@127.0.0.1:$SERVE_PORT/p$1"
	echo "map $TMP/local 4194304"
	echo "open 1"
	echo "tail 64 4096"
	echo "persist 0 64 8"
	echo "appenders 4 4000 64 4194304 200"
}

# What was acknowledged is what the local range has, since only then it is stored there.
check() {
	python3 - "$TMP/local" "$1" <<'EOF'
import sys
local, media = (open(path, 'rb').read() for path in sys.argv[1:3])
acked, tail = (int.from_bytes(data[64:72], 'little') for data in (local, media))
good = acked <= tail <= acked + 200 and (tail - 4096) % 200 == 0
good = good and local[4096:acked] == media[4096:acked]
for at in range(4096, tail if good else 0, 200):
    good = good and media[at:at + 200] == media[at:at + 1] * 200
print('%d appends acknowledged, %d on the media' % ((acked - 4096) // 200, (tail - 4096) // 200))
sys.exit(0 if good else 1)
EOF
}

power_cut() {
	"$CUT" "$TMP/serve/pools/$1" 2>"$TMP/cut.log" &&
		"$CUT" "$TMP/serve/pools/$1.repl" $SIDECAR_SLOTS 2>>"$TMP/cut.log" ||
		fail "the cut: $(cat "$TMP/cut.log")"
}

cut_once() {
	rm -f "$TMP/local"*
	commands "$1" | timeout 30 "$BUILD/tests/integration/api_shell" >"$TMP/said" 2>&1 &
	load=$!
	wait_for 15 test -s "$TMP/local" || fail "seed $1: $(cat "$TMP/said")"
	wait_for 15 tail_past $((4096 + 200 * (20 + $1 * 37 % 400))) || fail "seed $1: no appends"
	kill -KILL "$(session_pid)"
	wait "$load"
	power_cut "p$1"
	# The machine is up again: what is in a round log comes into the pool, durably.
	ctl probe "$SERVE_USER@127.0.0.1:$SERVE_PORT/p$1" >"$TMP/probe.log" 2>&1 ||
		fail "seed $1: probe"
	power_cut "p$1"
	check "$TMP/serve/pools/p$1" >"$TMP/verdict" && good=yes || good=no
	echo "append $REPL_MEDIA_GRANULARITY, seed $1${drop:+, drop}: $(tail -n 1 "$TMP/verdict")"
	rm -f "$TMP/serve/pools/p$1"*
	[ "$good" = yes ] && return
	lost=$((lost + 1))
	[ -n "$drop" ] || lost "seed $1: an append is lost or torn"
}

make_keys
seed=$first
while [ "$seed" -lt $((first + count)) ]; do
	[ $((seed % 2)) -eq 0 ] || export REPL_MEDIA_EVICT="$seed"
	start_serve
	cut_once "$seed"
	stop "$SERVE_PID"
	unset REPL_MEDIA_EVICT
	[ -z "$drop" ] || [ "$lost" -eq 0 ] || exit 0
	seed=$((seed + 1))
done
[ -z "$drop" ] || fail "no loss in $count runs with flushes left out"
