# SPDX-License-Identifier: BSD-3-Clause
# A sparse pool on a target whose disk is full: its replica is lost with a reason that says so, stays the copy that
# it was, and comes back when there is room.
. "$(dirname "$0")/full_lib.sh"

# What journals have left is given back.
settled() {
	[ "$(stat -c %b "$pools/p.repl")" -le 16 ]
}

room() {
	rm -f "$pools"/.filler
	back "$1"
	wait_for 10 settled || fail "$1: the sidecar keeps $(stat -c %b "$pools/p.repl") blocks"
}

start_on_disk tmpfs 32m
configure "$(pool p)"
ok set reconnect-max 200
ok set lanes 2
ok map "$TMP/local" $((24 * MIB))
ok open 5
ok put 0 $MIB 1
ok persist 0 0 $MIB

# A large range goes by RMA, a small one in a message; neither finds a page.
for len in 262144 64; do
	leave 0
	at=$((16 * MIB - len * 16))
	ok put $at $len 2
	ok persist 0 $at $len
	still_a_copy "$len bytes"
	room "$len bytes"
done

# Nor does an append, and it is not the tail word's fault.
ok tail 0 $((20 * MIB))
ok persist 0 0 8
leave 0
ok append 0 0 $((24 * MIB)) 4000 4
full || fail "an append: $TEXT"
still_a_copy "an append"
room "an append"

# Room for less than it misses.
leave 0
hurt kill
ok put $((8 * MIB)) $((4 * MIB)) 3
ok persist 0 $((8 * MIB)) $((4 * MIB))
leave $((3 * MIB))
still_a_copy "a journal"
room "a journal"
ok close
equal "$TMP/local" "$pools/p"
