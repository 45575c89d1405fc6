# SPDX-License-Identifier: BSD-3-Clause
# A growth that a target refuses leaves nothing behind: a replica that was away comes back all the same,
# by its dirty map and by a comparison, and the handle closes in time.
. "$(dirname "$0")/api_lib.sh"

# The replicas, and of the local file as much as they have.
same_files() {
	equal "$TMP/serve/pools/p" "$TMP/serve/pools/q"
	cmp -n "$(stat -c %s "$TMP/serve/pools/q")" "$TMP/local" "$TMP/serve/pools/q" >&2 ||
		lost "the local file differs"
}

make_keys
# What the targets may grow to.
ulimit -S -f 32768
start_serve
ulimit -S -f unlimited
start_api
# Not of whole blocks of a map.
size=$((8 * MIB + 4096))
configure "$(pool p)" "$(pool q)"
ok set lanes 1
ok set reconnect-min 1000
ok set reconnect-max 1000
ok map "$TMP/local" $size
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
ok extend $((64 * MIB))
refused REPL_E_LIMIT "size of files" grow $((64 * MIB))

# The last page, which shares its block of the map with nothing now.
signalled KILL "$(session_of q)"
wait_for 20 degraded 1 || fail "the loss is not noticed: $TEXT"
ok put $((8 * MIB)) 4096 2
ok persist 0 $((8 * MIB)) 4096
wait_for 10 established 1 || fail "it does not come back by its map: $TEXT"
same_files
ok close
within $((2000 + LATE))

# Away when the handle is opened: it is compared.
there=$SERVE_USER@127.0.0.1
away=$(free_port)
configure "$(pool p)" "$there:$away/q"
ok set lanes 1
ok set reconnect-max 500
ok map "$TMP/local" $size
ok open
ok extend $((64 * MIB))
refused REPL_E_LIMIT "size of files" grow $((64 * MIB))
ok put $((4 * MIB)) 4096 3
ok persist 0 $((4 * MIB)) 4096
SERVE_AT=$away
start_serve
wait_for 10 established 1 || fail "it does not come back by a comparison: $TEXT"
same_files

# What is refused is no more than that: a smaller growth, of both.
ok grow $((16 * MIB))
ok put $((16 * MIB - 4096)) 4096 4
ok persist 0 $((16 * MIB - 4096)) 4096
same_files
ok close
within $((2000 + LATE))
same_files
stop_api
