# SPDX-License-Identifier: BSD-3-Clause
# Who waits for replicas to be up to date waits for what is on its way to one that drains do not wait for, and who asks why is told of it.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=60000
make_keys
start_serve
start_api

configure "$(pool a)" "$(pool b)" "$(pool c)"
ok set async-target "$(pool d)"
ok set ack quorum
ok set heartbeat-timeout 60000
ok set heartbeat-interval 100
FILE=$TMP/pool
ok map "$FILE" $((4 * MIB))
ok open 1
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))
ctl wait "$FILE" --timeout 20 >/dev/null || fail "wait"

for late in c d; do
	pid=$(session_of "$late") || fail "no session of $late"
	signalled STOP "$pid"
	ok put 0 100000 "$((i = ${i-1} + 1))"
	ok persist 0 0 100000
	ctl_fails 9 "not all replicas are up-to-date" wait "$FILE" --timeout 0
	ctl_fails 9 "not all replicas are up-to-date" wait "$FILE" --timeout 2
	grep -q "/$late connected established up-to-date, .*B lag$" "$TMP/out" || fail "who lags is not told: $(cat "$TMP/out")"
	ctl wait "$FILE" --for established --timeout 0 >/dev/null || fail "it is not lost"
	kill -CONT "$pid"
	ctl wait "$FILE" --timeout 20 >/dev/null || fail "$late does not follow"
	cmp -n 100000 "$FILE" "$TMP/serve/pools/$late" || lost "$late lacks something"
done

# What is drained later is not waited for: else nobody who writes all the time would be up to date.
ctl_start wait "$FILE" --timeout 60
while kill -0 "$CTL_PID" 2>/dev/null; do
	ok persist 0 0 100000
done
wait "$CTL_PID" || fail "wait beside one who writes: $(cat "$TMP/bg.err")"

# Its writer tells the target with its heartbeats, which a session that is stopped does not take.
pid=$(session_of d)
lags() {
	for at in 1 2 3 4 5 6 7 8; do
		ok persist 0 0 $((4 * MIB))
	done
	ctl why "$(pool d)" >"$TMP/out" && grep -q "^ *it had .* on the way here" "$TMP/out"
}
wait_for 20 lags || fail "why says nothing of a lag: $(cat "$TMP/out")"
grep -q "^reason *none: .*lacks the last of it" "$TMP/out" || fail "$(cat "$TMP/out")"
ok close
for name in a b c d; do
	equal "$FILE" "$TMP/serve/pools/$name"
done
stop_api
