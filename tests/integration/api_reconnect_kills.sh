# SPDX-License-Identifier: BSD-3-Clause
# Losses in the middle of a resync, and many in a row, end in an equal replica, and leave no descriptor, thread
# or memory behind.
. "$(dirname "$0")/api_lib.sh"
LOSSES=${LOSSES:-20}
make_keys
start_serve
start_api
size=$((64 * MIB + 777))
configure "$(pool p)"
ok set lanes 2
ok set op-timeout 5000
ok set reconnect-min 20
ok set reconnect-max 100
ok set resync-rate 32M
ok map "$TMP/p" $size
ok open 1

# A session that is there is copied to; it is killed a little later each time.
some_session() {
	[ -n "$(sessions)" ]
}

# It may be back before anybody has seen that it was gone: losses are counted.
losses() {
	api stat 0
	field error
}

lost_since() {
	[ "$(losses)" -gt "$1" ]
}

before=$(losses)
hurt kill
wait_for 20 lost_since "$before" || fail "the loss is not noticed: $TEXT"
killed=0
for delay in 0.05 0.1 0.2 0.3 0.5 0.8; do
	ok put $((killed * 5 * MIB)) $((4 * MIB)) "$killed"
	ok persist 0 $((killed * 5 * MIB)) $((4 * MIB))
	wait_for 10 some_session || fail "nobody comes"
	sleep "$delay"
	pids=$(sessions)
	[ -z "$pids" ] || signalled KILL $pids
	killed=$((killed + 1))
done
whole_again 30 0 "killed $killed times"

descriptors() {
	ls "/proc/$(api_child)/fd" | wc -l
}

threads() {
	ls "/proc/$(api_child)/task" | wc -l
}

fds=$(descriptors)
tasks=$(threads)
for i in $(seq "$LOSSES"); do
	wait_for 10 some_session || fail "nobody comes"
	before=$(losses)
	signalled KILL $(sessions)
	wait_for 20 lost_since "$before" || fail "loss $i is not noticed: $TEXT"
	ok put $((i * 4096)) 4096 "$i"
	ok persist 1 $((i * 4096)) 4096
	wait_for 20 established 0 || fail "the replica does not come back from loss $i: $TEXT"
done
ok compare 0
same
[ "$(descriptors)" -le "$fds" ] || fail "$(descriptors) descriptors, $fds before"
[ "$(threads)" -le "$tasks" ] || fail "$(threads) threads, $tasks before"
ok close
equal "$TMP/p" "$TMP/serve/pools/p"
stop_api
