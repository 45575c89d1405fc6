# SPDX-License-Identifier: BSD-3-Clause
# A set grows while four lanes write; all replicas, the sidecars and what is written to the new part
# agree, and one replica that has no room keeps all as it was.
. "$(dirname "$0")/api_lib.sh"

sidecar_size() {
	python3 -c 'import sys; print(int.from_bytes(open(sys.argv[1], "rb").read()[48:56], "little"))' "$1"
}

make_keys
start_serve
start_api
configure "$(pool p)" "$(pool q)"
ok set lanes 6
ok set resync-rate 2M
ok map "$TMP/local" $((8 * MIB))
ok open 1
ok load 4 $((8 * MIB))
for size in $((9 * MIB)) $((17 * MIB + 9)) $((17 * MIB + 99)) $((17 * MIB + 8192)) $((32 * MIB)); do
	ok extend "$size"
	ok grow "$size"
	ok put $((size - MIB)) $MIB "$size"
	# By RMA and by message, in the new part, and across its beginning.
	ok persist 4 $((size - MIB)) $MIB
	ok persist 5 $((size - MIB + 8)) 8
	ok persist 4 $((7 * MIB)) $((2 * MIB))
done
ok unload
[ "${TEXT%% *}" -gt 4 ] || fail "no load: $TEXT"
ok persist 0 0 $((32 * MIB))
ok compare 0
same
ok compare 1
same
for pool in p q; do
	equal "$TMP/local" "$TMP/serve/pools/$pool"
	[ "$(sidecar_size "$TMP/serve/pools/$pool.repl")" = $((32 * MIB)) ] || fail "sidecar of $pool"
done
[ "$(sidecar_size "$TMP/local.repl")" = $((32 * MIB)) ] || fail "local sidecar"
refused REPL_E_INVAL "can't have only" grow $((31 * MIB))
ok grow $((32 * MIB))
refused REPL_E_INVAL "not mapped behind" grow $((40 * MIB))
# Such calls, without a pause, keep no replica from coming back.
kill -KILL "$(session_of q)"
ok put 0 $((4 * MIB)) 6
ok persist 0 0 $((4 * MIB))
ok stat 1
is replication 2
end=$(($(date +%s) + 20))
until ok stat 1 && [ "$(field replication)" = 0 ]; do
	[ "$(date +%s)" -lt "$end" ] || fail "not back: $TEXT"
	for i in {1..300}; do
		api grow $(((32 - i % 2) * MIB))
	done
done
ok close
ok open
ok compare 1
same

# The file grows while it is closed: the replicas follow.
ok close
ok map "$TMP/local" $((36 * MIB))
ok open
ok put $((33 * MIB)) $MIB 5
ok persist 0 $((33 * MIB)) $MIB
ok compare 0
same
equal "$TMP/local" "$TMP/serve/pools/q"
ok close
# And nobody makes it smaller.
ok map "$TMP/local" $((32 * MIB))
refused REPL_E_CORRUPT "is of a pool of" open
ok map "$TMP/local" $((36 * MIB))
ok open

# More than there is: no replica has grown, and the handle goes on.
refused REPL_E_INVAL "" persist 0 $((36 * MIB)) 1
ok extend $((4 * 1024 * MIB))
room=$(($(stat -f -c '%a * %S' "$TMP/serve/pools")))
if [ "$room" -lt $((4 * 1024 * MIB)) ]; then
	refused REPL_E_NOSPC "replica" grow $((4 * 1024 * MIB))
	[ "$(stat -c %s "$TMP/serve/pools/p")" = $((36 * MIB)) ] || fail "p has grown"
fi
ok persist 0 0 4096
api close
stop_api
