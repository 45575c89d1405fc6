# SPDX-License-Identifier: BSD-3-Clause
# When replicas are lost in the middle of appends, the places told are those on the survivor, or by
# the policy the call fails; without any the local range is the truth.
. "$(dirname "$0")/api_lib.sh"

# Lose the session of the pool that has this name.
lose() {
	local pid

	for pid in $(sessions); do
		ls -l "/proc/$pid/fd" 2>/dev/null | grep -q "/pools/$1\$" && kill -KILL "$pid" &&
			wait_for 20 gone "$pid" && return
	done
	fail "no session of $1"
}

prepare() {
	configure "$(pool "$1-a")" "$(pool "$1-b")"
	ok set lanes 4
	ok set on-loss "$2"
	stay_lost
	ok map "$TMP/$1" $((2 * MIB))
	ok open 1
	ok tail 64 4096
	ok persist 0 64 8
	ok append 0 64 $MIB 100 1
}

make_keys
start_serve "heartbeat = 20000" "heartbeat-timeout = 60000"
start_api

# The chooser goes: the next one chooses, at the same place.
prepare chooser degrade
lose chooser-a
ok append 0 64 $MIB 100 2
[ "$TEXT" = 4196 ] || lost "place $TEXT"
ok append 1 64 $MIB 100 3
[ "$TEXT" = 4296 ] || lost "place $TEXT"
ok stat 0
is connection 1
ok stat 1
is connection 0
ok compare 1
same
# And the last one: the program goes on without any.
lose chooser-b
ok append 0 64 $MIB 100 4
[ "$TEXT" = 4396 ] || lost "place $TEXT"
ok tail 64
[ "$TEXT" = 4496 ] || lost "tail $TEXT"
api close

# The other one goes.
prepare other degrade
lose other-b
ok append 0 64 $MIB 100 2
[ "$TEXT" = 4196 ] || lost "place $TEXT"
ok stat 1
is connection 1
ok compare 0
same
api close

# Under load.
prepare load degrade
ok set op-timeout 3000
{ sleep 0.3; lose load-a; } &
ok appenders 4 1500 64 $((2 * MIB)) 100
wait $! || fail "losing the chooser under load"
ok compare 1
same
ok tail 64
[ "$TEXT" = $((4196 + 6000 * 100)) ] || lost "tail $TEXT"
api close

# One that hangs is to choose, and another one is to be told that it is lost: those that are well have time left. No ping
# has noticed it before.
configure "$(pool hang-a)" "$(pool hang-b)" "$(pool hang-c)" "$(pool hang-d)"
ok set heartbeat-interval 20000
ok set heartbeat-timeout 30000
ok set op-timeout 5000
# Nobody waits for an answer by polling, be it for a moment.
ok set busy-poll 0
stay_lost
ok map "$TMP/hang" $((2 * MIB))
ok open 1
ok tail 64 4096
ok persist 0 64 8
for i in a c; do
	pid=$(session_of "hang-$i") || fail "no session of hang-$i"
	signalled STOP "$pid"
	hang="${hang-} $pid"
done
ok append 0 64 $MIB 100 1
[ "$TEXT" = 4096 ] || lost "place $TEXT"
within $((5000 + LATE))
for i in 1 3; do
	ok stat $i
	is error 0
	ok compare $i
	same
done
kill -KILL $hang
api close

# The time of one that is to choose is not that of those which nobody waits for.
configure "$(pool slow-a)"
for i in b c d; do
	ok set async-target "$(pool slow-$i)"
done
ok set heartbeat-interval 20000
ok set heartbeat-timeout 30000
ok set op-timeout 8000
stay_lost
ok map "$TMP/slow" $((2 * MIB))
ok open 1
ok tail 64 4096
ok persist 0 64 8
pid=$(session_of slow-a) || fail "no session of slow-a"
signalled STOP "$pid"
{
	sleep 2
	kill -CONT "$pid"
} &
ok append 0 64 $MIB 100 1
wait $! || fail "it is gone"
[ "$TEXT" = 4096 ] || lost "place $TEXT"
[ "$MS" -ge 1500 ] || fail "it was not slow: $MS ms"
ok stat 0
is connection 0
is error 0
ok compare 0
same
api close

prepare fail fail
lose fail-a
refused REPL_E_LOST "replica 0 is lost" append 0 64 $MIB 100 2
refused REPL_E_LOST "" append 0 64 $MIB 100 2
refused REPL_E_LOST "" append 1 64 $MIB 100 2
ok tail 64
[ "$TEXT" = 4196 ] || lost "stored after a loss: tail $TEXT"
api close
stop_api
