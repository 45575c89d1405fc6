# SPDX-License-Identifier: BSD-3-Clause
# A target that was away at open and grants fewer lanes than the program has by that says what helps, and it does: to raise
# its limit, or to ask for fewer and open again.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
port=$SERVE_PORT
start_api

opened() {
	configure "$(pool p)"
	ok set lanes "$1"
	ok set reconnect-min 100
	ok set reconnect-max 200
	ok open 1
}

away() {
	signalled KILL "$SERVE_PID"
	wait "$SERVE_PID" 2>/dev/null
}

back() {
	SERVE_AT=$port
	start_serve "$@"
}

told() {
	ctl why "$TMP/p" >"$TMP/out" && grep -q "^reason  *target-limit:" "$TMP/out" &&
		grep -q "^next .*; or, where it names" "$TMP/out" &&
		grep -q "grants 2 lanes.*program has 3 .*lanes-max in the target's repld.conf, or set lanes to 2 here" "$TMP/out"
}

ok map "$TMP/p" $MIB
opened 3
ok put 0 $MIB 1
ok persist 0 0 $MIB
ok close
wait_for 20 no_sessions || fail "a session stays"

away
opened 3
ok persist 2 0 64
back "lanes-max = 2"
wait_for 20 told || fail "why: $(cat "$TMP/out")"
# Each session reads it anew.
sed -i 's/^lanes-max = 2/lanes-max = 3/' "$TMP/repld.conf"
wait_for 20 established 0 || fail "with a raised limit it does not come back: $TEXT"
ok close
wait_for 20 no_sessions || fail "a session stays"

sed -i 's/^lanes-max = 3/lanes-max = 2/' "$TMP/repld.conf"
away
opened 3
back "lanes-max = 2"
wait_for 20 told || fail "why: $(cat "$TMP/out")"
ok close
opened 2
ok stat 0
is replication 0
ok persist 1 0 64
ok close
stop_api
