# SPDX-License-Identifier: BSD-3-Clause
# A program dies whose dirty map and record could not be written since its replicas have a newer generation. A sync to the one that
# equals the file takes that generation over, and the map is not believed for it: the other replica gets what it lacks.
# Likewise where a program dies as its pool grows, before its record tells that, and a sync records the size: the map does not
# know of the new part.
. "$(dirname "$0")/laggard_lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
mkdir -m 777 "$TMP/gates" || exit 1
gate=$TMP/gates/d
printf '#!/bin/sh\nLD_PRELOAD=%s SLOW_SYNC=%s SLOW_SYNC_OF=/pools/d exec "%s" "$@"\n' \
	"$BUILD/tests/integration/slow_space.so" "$gate" "$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

# set_up FILE POOL POOL
set_up() {
	start_api
	configure "$(pool "$2")" "$(pool "$3")"
	ok set lanes 1
	ok set heartbeat-timeout 60000
	ok set op-timeout 60000
	ok set after-crash dirty-map
	ok map "$TMP/$1" $size
}

both_same() {
	for i in 0 1; do
		ok compare $i
		same
	done
}

a_has() {
	cmp -s "$TMP/p" "$TMP/serve/pools/a"
}

set_up p a b
fill 1
ok close
ok open
cp "$TMP/p.repl" "$TMP/old"
signalled KILL "$(session_of b)"
ok persist 0 0 4096
wait_for 20 established 1 || fail "b is not back"
late=$(session_of b)
signalled STOP "$late"
ok put $((16 * MIB)) 65536 2
printf 'persist 0 %d 65536\n' $((16 * MIB)) >&"$API_IN"
wait_for 10 a_has || fail "a has not got it"
signalled KILL "$(api_child)"
signalled KILL "$late"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
cmp -s "$TMP/p" "$TMP/serve/pools/b" && fail "b has it"
cp "$TMP/old" "$TMP/p.repl"

ctl sync "$TMP/p" "$T/a" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
set_up p a b
ok open
both_same
ok close
stop_api

# c is away, and d makes room when the program dies.
grown=$((size + 8 * MIB))
set_up q c d
stay_lost
fill 1
signalled KILL "$(session_of c)"
ok persist 0 0 4096
wait_for 20 degraded 0 || fail "c is not lost"
ok extend $grown
ok put $size $((grown - size)) 3
ok sync
: >"$gate"
printf 'grow %d\n' $grown >&"$API_IN"
wait_for 20 test -e "$gate.met" || fail "d does not grow"
signalled KILL "$(api_child)"
rm "$gate" "$gate.met"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
ctl grow "$T/d" --size $grown >"$TMP/out" 2>&1 || fail "grow: $(cat "$TMP/out")"
ctl sync "$TMP/q" "$T/d" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
size=$grown
set_up q c d
ok open
wait_for 20 established 0 || fail "c is not back"
both_same
ok close
stop_api
