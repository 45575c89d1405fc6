# SPDX-License-Identifier: BSD-3-Clause
# Bad arguments are refused with a text that names them, and the handle goes on.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
last=18446744073709551615
configure "$(pool p)"
ok set lanes 2
ok map "$TMP/p" $MIB

refused REPL_E_INVAL "not a multiple of 4096" open 1 1
refused REPL_E_INVAL "size 0 " open 1 0 0
refused REPL_E_INVAL "address space" open 1 0 18446744073709547520
refused REPL_E_INVAL "unknown flags 0x9" open 9
refused REPL_E_INVAL "unknown flags" open 2147483648
refused REPL_E_NOT_FOUND "p" open 0
[ -z "$(ls "$TMP/serve/pools")" ] || fail "a refused open left $(ls "$TMP/serve/pools")"
[ ! -e "$TMP/p.repl" ] || fail "a refused open left p.repl"
api config
refused REPL_E_INVAL "no target: name one by the key 'target'" open 1

# The configuration.
configure "$(pool p)"
refused REPL_E_CONFIG "many" set lanes many
refused REPL_E_CONFIG "lanes" set lanes 0
refused REPL_E_CONFIG "lanes" set lanes 65
refused REPL_E_CONFIG "maybe" set on-loss maybe
refused REPL_E_CONFIG "no-such-key" set no-such-key 1
refused REPL_E_CONFIG "there already" set target "$(pool p)"
for name in ../p a/../p /p "" ./p; do
	refused REPL_E_CONFIG "target" set target "$(pool "$name")"
done
ok thread
[[ $TEXT == "before='' after='"*no-such-key*"here='"*many* ]] || fail "texts of threads: $TEXT"
ok set lanes 2
ok open 1

refused REPL_E_INVAL "lane 2 of 2" persist 2 0 64
refused REPL_E_INVAL "lane 4294967295" drain 4294967295
refused REPL_E_INVAL "lane 2" atomic8 2 0
refused REPL_E_INVAL "lane 2" pair 2 0 8 8 8
refused REPL_E_INVAL "lane 2" read 2 0 0 8
refused REPL_E_INVAL "replica 1 of 1" read 0 1 0 8
refused REPL_E_INVAL "replica 1 of 1" stat 1
refused REPL_E_INVAL "replica 1 of 1" profile 1
for range in "$MIB 1" "$((MIB - 1)) 2" "$last 1" "$last 2" "2 $last" "0 $((MIB + 1))" \
	"18446744073708503040 $MIB"; do
	refused REPL_E_INVAL "outside the pool of $MIB bytes" flush 0 $range
	refused REPL_E_INVAL "outside the pool" persist 0 $range
	refused REPL_E_INVAL "outside the pool" read 0 0 $range
	refused REPL_E_INVAL "outside the pool" pair 0 0 8 $range
	refused REPL_E_INVAL "outside the pool" pair 0 $range 0 8
done
refused REPL_E_INVAL "offset 4 is not a multiple of 8" atomic8 0 4
refused REPL_E_INVAL "outside the pool" atomic8 0 $MIB
refused REPL_E_INVAL "outside the pool" atomic8 0 18446744073709551608
refused REPL_E_INVAL "overlap" pair 0 0 8 7 8
refused REPL_E_INVAL "overlap" pair 0 100 8 100 8
refused REPL_E_INVAL "empty" pair 0 0 0 8 8

# A lane is one thread's: the other one is told so, and nothing else happens.
ok busy 1
[ "$(field other)" = 0 ] || fail "two threads in a lane: $TEXT"
[ "$(field busy)" -gt 0 ] || fail "never busy: $TEXT"

ok put 0 $MIB 1
ok persist 0 0 $MIB
ok persist 0 $MIB 0
ok compare 0
same
ok stat 0
is error 0
ok close

# A pool of another size.
ok map "$TMP/q" $((2 * MIB))
refused REPL_E_INVAL "has $MIB bytes, the local range has $((2 * MIB))" open 1
[ "$(stat -c %s "$TMP/serve/pools/p")" -eq $MIB ] || fail "the size of the pool changed"
stop_api
equal "$TMP/p" "$TMP/serve/pools/p"
