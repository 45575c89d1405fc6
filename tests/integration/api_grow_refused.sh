# SPDX-License-Identifier: BSD-3-Clause
# A growth that a target refuses leaves nothing behind: a replica that was away comes back all the same,
# by its dirty map and by a comparison, and the handle closes in time. One that has fewer addresses than what its pool has
# grown to while it was away takes others, where they can be had.
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

# Of these a limit leaves less than what the limit is; no sanitizer does with so few.
sanitized && exit
kill "$SERVE_PID" && wait "$SERVE_PID"
ulimit -S -v 1835008
start_serve
ulimit -S -v unlimited
start_api
few=$(pool few)
configure "$few"
ok set lanes 1
ok set reconnect-min 200
ok set reconnect-max 500
ok map "$TMP/other" $((8 * MIB))
ok open 5
ok put 0 $((8 * MIB)) 5
ok persist 0 0 $((8 * MIB))
large=$((1152 * MIB))
ok extend $large
refused REPL_E_LIMIT "can grow to [0-9]* bytes in this session" grow $large
ctl pause "$TMP/other" "$few" >/dev/null || fail "pause"
wait_for 20 degraded 0 || fail "not paused: $TEXT"
ok grow $large
ok put $((large - MIB)) $MIB 6
ok persist 0 $((large - MIB)) $MIB
ctl resume "$TMP/other" "$few" >/dev/null || fail "resume"
wait_for 20 established 0 || fail "it does not follow its pool: $(ctl why "$TMP/other")"
ok read 0 0 0 $((8 * MIB))
same
ok read 0 0 $((large - 8 * MIB)) $((8 * MIB))
same
ok close

# Nor does who grows one by hand take steps; what there are no addresses for is refused, and the pool is what it was.
ctl create "$(pool hand)" --size 8M --sparse >/dev/null || fail "create"
ctl grow "$(pool hand)" --size 64G >"$TMP/out" 2>&1 && lost "64 GiB in less than 2 GiB of addresses"
grep -q "there are no addresses for so many on the target" "$TMP/out" || fail "told: $(cat "$TMP/out")"
ctl grow "$(pool hand)" --size 1152M >/dev/null || fail "grow"
stop_api
