# SPDX-License-Identifier: BSD-3-Clause
# With a receive ring as well a lost replica comes back, and has its ring again.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve "rqwrb = pm"
start_api
configure "$(pool p)"
ok set lanes 2
ok set op-timeout 5000
ok set method deposit
ok set reconnect-max 300
ok map "$TMP/p" $((4 * MIB))
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
for again in 1 2 3; do
	hurt kill
	wait_for 20 degraded 0 || fail "the loss is not noticed: $TEXT"
	ok put $((again * 65536)) 65536 $((again + 1))
	ok persist 1 $((again * 65536)) 65536
	wait_for 20 established 0 || fail "the replica does not come back: $TEXT"
	[ -s "$TMP/serve/pools/p.repl" ] && [ "$(stat -c %s "$TMP/serve/pools/p.repl")" -gt 8192 ] ||
		fail "it has no ring any more"
	ok put 4096 4096 $((again + 9))
	ok persist 0 4096 4096
done
ok compare 0
same
ok close
equal "$TMP/p" "$TMP/serve/pools/p"
stop_api
