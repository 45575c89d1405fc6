# SPDX-License-Identifier: BSD-3-Clause
# A program that is started again while the disk of a target is full, and its sparse replica lacks something, goes on
# without it as it did before, unless on-loss = fail; the replica comes back when there is room.
. "$(dirname "$0")/full_lib.sh"

start_on_disk ext4 64m

again() {
	start_api
	configure "$(pool p)"
	ok set reconnect-max 200
	ok set lanes 2
	ok set on-loss "$1"
	ok map "$TMP/local" $((24 * MIB))
}

stop_api
again degrade
ok open 5
ok put 0 $MIB 1
ok persist 0 0 $MIB
leave 0
# More than the round log of a session that has ended leaves, where those who ask for it have taken a block of that, so
# that the next one's is not made: then what is less has room, and comes back.
ok put $((8 * MIB)) $((8 * MIB)) 2
ok persist 0 $((8 * MIB)) $((8 * MIB))
signalled KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
wait_for 20 no_sessions || fail "a session stays"

again fail
refused REPL_E_NOSPC "are free|No space left|is left" open 4
stop_api
again degrade
ok open 4
ok put $((17 * MIB)) 65536 3
ok persist 0 $((17 * MIB)) 65536
still_a_copy "opened again"
rm -f "$pools"/.filler
back "opened again"
ok close
equal "$TMP/local" "$pools/p"

# A new pool that has no room there is an error: its size may be wrong.
leave $MIB
configure "$(pool new)"
ok map "$TMP/new" $((24 * MIB))
refused REPL_E_NOSPC "are free" open 1
stop_api
