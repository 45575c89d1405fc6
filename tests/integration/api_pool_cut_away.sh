# SPDX-License-Identifier: BSD-3-Clause
# A pool's file that is cut while nobody has it open is whole again by either way of docs/RECOVERY.md.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
pools=$TMP/serve/pools
configure "$(pool p)"
ok set reconnect-min 100
ok set reconnect-max 200
ok map "$TMP/p" $MIB
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB

# whole_again WHAT: it comes back, and nothing that was not written again is missing.
whole_again() {
	wait_for 20 established 0 || fail "$1: it does not come back: $TEXT"
	ok compare 0
	same
}

was_cut() {
	grep -q "pool 'p': its file was cut by another hand" "$TMP/serve.log"
}

# cut: while it is paused, so that a dirty map tells what it misses.
cut() {
	ctl pause "$TMP/p" >/dev/null || fail "pause"
	ok put 8192 64 "$1"
	ok persist 0 8192 64
	truncate -s 64K "$pools/p"
}

# Its size comes back when the log has said that it was cut.
cut 2
ctl resume "$TMP/p" >/dev/null || fail "resume"
wait_for 20 was_cut || fail "nothing in the target's log"
truncate -s $MIB "$pools/p"
whole_again "with its size again"

# It has its size again before anybody has looked: it is made anew.
cut 3
truncate -s $MIB "$pools/p"
ctl remove --force "$(pool p)" >/dev/null || fail "remove"
ctl resume "$TMP/p" >/dev/null || fail "resume"
whole_again "made anew"
ok close
stop_api
