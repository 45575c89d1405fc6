# SPDX-License-Identifier: BSD-3-Clause
# A pool that has grown while a replica was away, in files of a set that hold no more, is opened without it; with larger
# files it comes back by itself.
. "$(dirname "$0")/api_lib.sh"

# comes_back REPLICA: it is there, and equal.
comes_back() {
	wait_for 20 established "$1" || fail "it does not come back: $TEXT"
	ok compare "$1"
	same
}

make_keys
start_serve
start_api
mkdir "$TMP/serve/pools/d"
[ "$(id -u)" != 0 ] || chown --reference="$TMP/serve/pools" "$TMP/serve/pools/d"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n8M d\n' >"$TMP/serve/pools/q"
set_up() {
	configure "$(pool p)" "$(pool q)"
	ok set lanes 1
	ok set reconnect-min 200
	ok set reconnect-max 500
	[ "$#" = 0 ] || ok set on-loss "$1"
}
set_up
ok map "$TMP/local" $((4 * MIB))
ok open 1
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))
ctl pause "$TMP/local" "$(pool q)" >/dev/null || fail "pause"
wait_for 20 degraded 1 || fail "not paused: $TEXT"
ok extend $((16 * MIB))
ok grow $((16 * MIB))
ok put $((12 * MIB)) $MIB 2
ok persist 0 $((12 * MIB)) $MIB
ok close

# It is there, and can't have what is wanted of it.
ok open
ok stat 0
is replication 0
ok stat 1
is data 2
is replication 2
[[ $TEXT =~ "given 8388608 bytes, too few" ]] || fail "no reason: $TEXT"
ctl why "$TMP/local" >"$TMP/out" || fail "why"
grep -q "target-full" "$TMP/out" || fail "why: $(cat "$TMP/out")"
ok put 0 $MIB 3
ok persist 0 0 $MIB
equal "$TMP/local" "$TMP/serve/pools/p"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n32M d\n' >"$TMP/serve/pools/q"
comes_back 1
ok close

# Whoever wants all of them is told.
set_up fail
ok map "$TMP/local" $((40 * MIB))
refused REPL_E_NOSPC "too few for a pool of 41943040: raise their sizes" open
api close
stop_api
