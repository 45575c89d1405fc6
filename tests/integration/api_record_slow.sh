# SPDX-License-Identifier: BSD-3-Clause
# The disk of the program's own record stalls for longer than targets bear silence: that a replica is lost, and that it is
# back, is recorded there, and no other one is lost by that; nor is one by what is recorded at opening and closing, or when
# it is closed. Nor does a call of another thread's fail that has to wait for it.
. "$(dirname "$0")/api_lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
make_keys
start_serve "heartbeat = 750" "heartbeat-timeout = 3000"

# start_slow NAME: a program of its own, whose disk is slow while $TMP/slow-NAME is there.
start_slow() {
	cat >"$TMP/shell-$1" <<END
#!/bin/sh
SLOW_SYNC=$TMP/slow-$1 LD_PRELOAD=$BUILD/tests/integration/slow_sync.so exec "$API_SHELL"
END
	chmod 755 "$TMP/shell-$1"
	API_SHELL=$TMP/shell-$1
	start_api
}

# stalls AFTER-CRASH
stalls() {
	crash=$1
	start_slow "$crash"
	configure "$(pool "a$crash")" "$(pool "b$crash")"
	ok set after-crash "$crash"
	if [ "$crash" = compare ]; then
		ok set target "$(pool "c$crash")"
		ok set ack quorum
	fi
	ok map "$TMP/$crash" $MIB
	ok open 1
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	lost_pid=$(session_of "b$crash") || fail "no session"
	echo 3600 >"$TMP/slow-$crash"
	kill -KILL "$lost_pid"
	wait_for 20 degraded 1 || fail "nobody misses it: $TEXT"
	# The record takes longer than a drain may wait for answers.
	[ "$crash" = dirty-map ] || ok persist 0 0 4096
	wait_for 60 established 1 || fail "it does not come back: $TEXT"
	# That it is back is recorded within a second or two, and that takes as long as the stall.
	sleep 8
	rm "$TMP/slow-$crash"
	ok stat 0
	is error 0
	ok stat 1
	is error 1
	if [ "$crash" = compare ]; then
		ok stat 2
		is error 0
	fi
	ok close
	stop_api
}

# in_order POOL...
in_order() {
	local pool

	for pool; do
		ctl info "$(pool "$pool")" | grep -q '^state *up-to-date' ||
			fail "not closed in order: $(ctl info "$(pool "$pool")")"
	done
}

# A region is made, and named, by several syncs with nothing else in between.
begins_and_ends() {
	start_slow ends
	configure "$(pool d)" "$(pool e)"
	ok set after-crash dirty-map
	ok map "$TMP/ends" $MIB
	echo 1100 >"$TMP/slow-ends"
	ok open 1
	[ "$MS" -ge 6000 ] || fail "opening does not wait for the disk: $MS ms"
	rm "$TMP/slow-ends"
	ok put 0 4096 1
	ok persist 0 0 4096
	for replica in 0 1; do
		ok stat $replica
		is error 0
		is replication 0
	done
	echo 1100 >"$TMP/slow-ends"
	ok close
	[ "$MS" -ge 6000 ] || fail "closing does not wait for the disk: $MS ms"
	stop_api
	in_order d e
}

# The loss of one is being recorded when the others are to be closed, and then that nobody writes any more.
ends_amid() {
	start_slow amid
	configure "$(pool am)" "$(pool bm)" "$(pool cm)"
	ok map "$TMP/amid" $MIB
	ok open 1
	ok put 0 4096 1
	ok persist 0 0 4096
	lost_pid=$(session_of bm) || fail "no session"
	echo 1000 >"$TMP/slow-amid"
	kill -KILL "$lost_pid"
	wait_for 20 degraded 1 || fail "nobody misses it: $TEXT"
	ok close
	[ "$MS" -ge 9000 ] || fail "closing does not wait for both: $MS ms"
	stop_api
	in_order am cm
}

# Whoever finds the loss, or enters in the activity log what is written to, waits for the disk with bytes on their way that
# the others have as well, or with the turn of appends.
others_wait() {
	OP_TIMEOUT=3000
	start_slow others
	configure "$(pool ao)" "$(pool bo)"
	ok set lanes 6
	ok set after-crash dirty-map
	ok map "$TMP/others" $((256 * MIB))
	ok open 1
	ok tail 64 4096
	ok persist 4 0 $((4 * MIB))
	lost_pid=$(session_of bo) || fail "no session"
	ok load 4 $((4 * MIB))
	echo 4000 >"$TMP/slow-others"
	kill -KILL "$lost_pid"
	for i in 1 2 3; do
		ok persist 4 0 $((4 * MIB))
		ok commit 5
	done
	ok unload
	# The one that has the turn is the first to write there.
	ok tail 64 $((200 * MIB))
	ok persist 4 64 8
	ok appenders 2 1 64 $((256 * MIB)) 64
	rm "$TMP/slow-others"
	ok stat 1
	[ "$(field error)" -ge 1 ] || fail "nobody misses it: $TEXT"
	ok close
	stop_api
}

# Most of it is waiting: all at once.
jobs=
for job in "stalls compare" "stalls dirty-map" begins_and_ends ends_amid others_wait; do
	($job) &
	jobs="$jobs $!"
done
for job in $jobs; do
	wait "$job" || exit 1
done
