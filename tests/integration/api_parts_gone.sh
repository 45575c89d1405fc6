# SPDX-License-Identifier: BSD-3-Clause
# Parts of a pool set that an administrator removes, renames or replaces while a program writes: what goes to files without
# a name is on nobody's replica, so the program does not call it up to date, and what lies there now is brought up to it.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
pools=$TMP/serve/pools
printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M p0\n2M p1\nREPLICA\n4M r\n' >"$pools/p"
configure "$(pool p)"
ok set lanes 2
ok set reconnect-min 100
ok set reconnect-max 200
ok map "$TMP/p" $((4 * MIB))
ok open 1
mkdir "$TMP/kept"
cp -p "$pools/p1" "$pools/r" "$TMP/kept"
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))

given_up() {
	api stat 0
	[ "$(field replication)" = 2 ] && [ "$(field data)" != 0 ]
}

# gone_after WHAT: it is noticed, told, and the program goes on.
gone_after() {
	wait_for 10 given_up || fail "$1: still called up to date: $TEXT"
	wait_for 10 grep -q "pool 'p': its files were removed, renamed or replaced while it was open" "$TMP/serve.log" ||
		fail "$1: nothing in the target's log: $(tail -n 3 "$TMP/serve.log")"
	emptied "$TMP/serve.log"
	ok put 4096 4096 2
	works || fail "$1: the program does not go on: $TEXT"
}

# whole WHAT: it comes back, and the pool and its local replica are as the program's file is.
whole() {
	whole_again 20 0 "$1"
	cat "$pools/p0" "$pools/p1" | cmp - "$TMP/p" || lost "$1: the pool differs"
	cat "$pools/p0" "$pools/p1" | cmp - "$pools/r" || lost "$1: the local replica differs"
}

mv "$pools/p1" "$TMP/p1"
gone_after "a part renamed"
mv "$TMP/p1" "$pools/p1"
whole "a part renamed"

mv "$TMP/kept/p1" "$pools/p1"
gone_after "a part replaced"
whole "a part replaced"

rm "$pools/r"
gone_after "a part of the local replica removed"
mv "$TMP/kept/r" "$pools/r"
whole "an old one in its place"
ok close
stop_api
