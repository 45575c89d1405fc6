# SPDX-License-Identifier: BSD-3-Clause
# A replica whose target has free space for a journal, and a quota that has not, comes back: what it lacks goes directly
# into the pool, in the session that is there, when it is lost and found and when the program is started again.
. "$(dirname "$0")/api_lib.sh"
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
size=$((24 * MIB + 777))

refused_stages() {
	grep -c "lane [0-9]*: journal: write: Disk quota exceeded" "$TMP/serve.log"
}

make_keys
export QUOTA=$MIB
LD_PRELOAD=$BUILD/tests/integration/quota.so start_serve
unset QUOTA
start_api
configure "$(pool p)"
ok set reconnect-max 200
ok set lanes 2
ok map "$TMP/local" $size
ok put 0 $size 1
ok open 5
hurt kill
ok put 0 $((8 * MIB)) 2
ok persist 0 0 $((8 * MIB))
wait_for 20 established 0 || fail "found: not back: $TEXT"
refused=$(refused_stages)
[ "$refused" -gt 0 ] || fail "found: no journal was refused"
equal "$TMP/local" "$TMP/serve/pools/p"

hurt kill
ok put $((8 * MIB)) $((8 * MIB)) 3
ok persist 0 $((8 * MIB)) $((8 * MIB))
signalled KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
wait_for 20 no_sessions || fail "a session stays"
start_api
configure "$(pool p)"
ok set lanes 2
ok map "$TMP/local" $size
ok open 4
wait_for 20 established 0 || fail "opened again: not back: $TEXT"
[ "$(refused_stages)" -gt "$refused" ] || fail "opened again: no journal was refused"
ok close
equal "$TMP/local" "$TMP/serve/pools/p"
