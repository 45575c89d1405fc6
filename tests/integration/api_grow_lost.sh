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
q=$(session_of q) || fail "no session"
: >"$gate"
# The disk of p: a target has 3.75 s of op-timeout at most to take what it is told of a loss, and 10 s to make room.
(
	wait_for 20 test -e "$gate.met" && kill -KILL "$q" && sleep 5
	met=$?
	rm "$gate"
	exit $met
) &
disk=$!
ok grow $((16 * MIB))
wait "$disk" || fail "p has not synced what it has grown by"
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
