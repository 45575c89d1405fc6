# SPDX-License-Identifier: BSD-3-Clause
# A flush for which a full lane is drained first, while a replica is lost, is flushed for the others whatever
# it returns: the next drain brings it to them.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
configure "$(pool p)" "$(pool q)"
ok set lanes 1
ok set on-loss fail
ok set reconnect-max 300
ok map "$TMP/p" $((4 * MIB))
ok open 1
"$REPLCTL" pause --force "$TMP/p" "$(pool q)" >/dev/null || fail "no pause"
wait_for 20 degraded 1 || fail "not paused: $TEXT"
ok put 0 $((4 * MIB)) 1
for at in $(seq 0 127); do
	ok flush 0 $((at * 8192)) 4096
done
refused REPL_E_LOST "replica 1 is lost" flush 0 $((128 * 8192)) 4096
"$REPLCTL" resume "$TMP/p" "$(pool q)" >/dev/null || fail "no resume"
wait_for 20 established 1 || fail "it does not come back: $TEXT"
ok drain 0
for replica in 0 1; do
	ok read 0 $replica $((128 * 8192)) 4096
	same
done
ok close
stop_api
