# SPDX-License-Identifier: BSD-3-Clause
# A replica that makes room for longer than a loss may take to be told is not lost when another one is: it is told behind
# that, and what is written meanwhile is acknowledged then.
. "$(dirname "$0")/api_lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
mkdir -m 777 "$TMP/gates" || exit 1
gate=$TMP/gates/p
printf '#!/bin/sh\nLD_PRELOAD=%s SLOW_SYNC=%s SLOW_SYNC_OF=/pools/p exec "%s" "$@"\n' \
	"$BUILD/tests/integration/slow_space.so" "$gate" "$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
make_keys
start_serve
start_api
configure "$(pool p)" "$(pool q)"
ok set lanes 4
ok map "$TMP/local" $((8 * MIB))
ok open 1
ok load 2 $((8 * MIB))
ok extend $((16 * MIB))
# The disk of p: a target has 3.75 s of op-timeout at most to take what it is told of a loss, and 10 s to make room.
# grow_slowly BYTES [BEFORE]: q is killed behind that command
grow_slowly() {
	local q disk

	q=$(session_of q) || fail "no session"
	: >"$gate"
	(
		wait_for 20 test -e "$gate.met" && ${2-true} && kill -KILL "$q" && sleep 6.2
		met=$?
		rm "$gate" "$gate.met"
		exit $met
	) &
	disk=$!
	ok grow "$1"
	wait "$disk" || fail "p has not synced what it has grown by"
}
grow_slowly $((16 * MIB))
ok unload
ok put 0 $((16 * MIB)) 3
ok persist 3 0 $((16 * MIB))
ok stat 0
is error 0
is replication 0
ok compare 0
same
ok stat 1
is error 1
ok close
stop_api

# With a quorum p misses what the others have acknowledged meanwhile. It is told what it has when it has grown, and counts then
# for the drains that began before q was killed, three quarters of whose time are over by then.
p_lags() {
	local p

	p=$(session_of p) || fail "no session"
	signalled STOP "$p" || fail "p does not stop"
	wait_for 10 lags || fail "p does not lag"
	(sleep 1 && kill -CONT "$p") &
}

lags() {
	ctl --json status "$TMP/local" >"$TMP/status" && grep -q '"lag_bytes": *[1-9]' "$TMP/status"
}
OP_TIMEOUT=8000
start_api
configure "$(pool p)" "$(pool q)" "$(pool s)"
ok set ack quorum
ok set lanes 4
ok map "$TMP/local" $((16 * MIB))
ok open 1
ok load 2 $((16 * MIB))
ok extend $((24 * MIB))
grow_slowly $((24 * MIB)) p_lags
ok unload
ok stat 0
is error 0
is replication 0
ok put 0 $((24 * MIB)) 5
ok persist 3 0 $((24 * MIB))
ok compare 0
same
ok stat 1
is error 1
ok close
stop_api
