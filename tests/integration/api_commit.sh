# SPDX-License-Identifier: BSD-3-Clause
# repl_commit makes durable what was flushed on every lane, waits for lanes that are in use, and
# fails none of their calls.
. "$(dirname "$0")/api_lib.sh"

make_keys
start_serve
start_api
configure "$(pool p)" "$(pool q)"
ok set lanes 8
ok map "$TMP/local" $((8 * MIB))
ok open 1
ok put 0 $((8 * MIB)) 3
for lane in 0 1 2 3 4 5 6 7; do
	ok flush $lane $((lane * MIB)) 100
	ok flush $lane $((lane * MIB + 4096)) 100000
done
ok commit 3
for lane in 0 7; do
	for replica in 0 1; do
		ok read 0 $replica $((lane * MIB)) 100
		same
		ok read 0 $replica $((lane * MIB + 4096)) 100000
		same
	done
done
refused REPL_E_INVAL "lane 8 of 8" commit 8
# One drain to the program, whatever lanes it had, and what a resync goes by.
ok stat 0
is drain 1
is histogram 1

ok load 4 $((4 * MIB))
for i in 1 2 3 4 5 6 7 8 9 10; do
	ok put $((5 * MIB)) 1000 "$i"
	ok flush 5 $((5 * MIB)) 1000
	ok commit 0
	ok read 6 1 $((5 * MIB)) 1000
	same
done
ok unload
ok close
stop_api
