# SPDX-License-Identifier: BSD-3-Clause
# A program dies whose dirty map and record could not be written since its replicas have a newer generation. A sync to the one that
# equals the file takes that generation over, and the map is not believed for it: the other replica gets what it lacks.
. "$(dirname "$0")/laggard_lib.sh"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

set_up() {
	start_api
	configure "$(pool a)" "$(pool b)"
	ok set lanes 1
	ok set heartbeat-timeout 60000
	ok set op-timeout 60000
	ok set after-crash dirty-map
	ok map "$TMP/p" $size
}

a_has() {
	cmp -s "$TMP/p" "$TMP/serve/pools/a"
}

set_up
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
set_up
ok open
for i in 0 1; do
	ok compare $i
	same
done
ok close
stop_api
