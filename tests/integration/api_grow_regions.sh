# SPDX-License-Identifier: BSD-3-Clause
# A growth to more than a session can name by its regions is refused before anything has changed: no replica is lost.
. "$(dirname "$0")/api_lib.sh"

GIB=$((1 << 30))
# A region each, and 16384 of them at most; the target has addresses for 16 times the size.
size=$((1100 * GIB))
most=$((16384 * GIB))

make_keys
start_serve
start_api
truncate -s $((most + 4096)) "$TMP/local" 2>/dev/null || {
	echo "no file of 16 TiB in $TMP"
	exit 77
}
rm "$TMP/local"
configure "$(pool p)"
ok set lanes 1
ok map "$TMP/local" $size
ok open 5
ok extend $((most + 4096))
refused REPL_E_LIMIT "more than 16384 regions.*open it again" grow $((most + 4096))
ok stat 0
is replication 0
[ "$(stat -c %s "$TMP/serve/pools/p")" = $size ] || fail "the pool has another size"
ok put 4096 8 1
ok persist 0 4096 8
ok grow $((size + GIB))
ok put $size 8 2
ok persist 0 $size 8
ok stat 0
is replication 0
ok close
stop_api
