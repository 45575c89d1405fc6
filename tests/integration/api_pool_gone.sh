# SPDX-License-Identifier: BSD-3-Clause
# A pool whose files an administrator removes, renames or replaces while a program writes to it: what goes to files
# without a name is on nobody's replica, so the program does not call it up to date; nor what goes to files that a link in
# their place leads to, since no link is followed. One that comes back after its target was up without it gets all that it
# has missed.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
pools=$TMP/serve/pools
configure "$(pool p)"
ok set lanes 2
ok set reconnect-min 100
ok set reconnect-max 200
ok map "$TMP/p" $MIB
ok open 1
ok put 0 4096 1
ok persist 0 0 4096

given_up() {
	api stat 0
	[ "$(field replication)" = 2 ] && [ "$(field data)" != 0 ]
}

# gone_after WHAT: it is noticed, told, and the program goes on.
gone_after() {
	wait_for 10 given_up || fail "$1: still called up to date: $TEXT"
	wait_for 10 grep -q "pool 'p': its files were removed, renamed or replaced while it was open" "$TMP/serve.log" ||
		fail "$1: nothing in the target's log: $(tail -n 3 "$TMP/serve.log")"
	wait_for 10 grep -q "session ends: files are not what they were, pool 'p' was open for writing" "$TMP/serve.log" ||
		fail "$1: why the session ends is not told: $(grep "session ends" "$TMP/serve.log")"
	emptied "$TMP/serve.log"
	ok put 4096 4096 2
	works || fail "$1: the program does not go on: $TEXT"
}

# It is made anew as soon as the target is reached again: what it was until then is told.
ctl_start events "$TMP/p" --json
wait_for 10 test -s "$TMP/bg.out" || fail "events: $(cat "$TMP/bg.err")"
mv "$pools/p" "$TMP/kept"
gone_after "the pool renamed"
wait_for 10 grep -q pool-missing "$TMP/bg.out" || fail "events: $(cat "$TMP/bg.out")"
kill "$CTL_PID"
mv "$TMP/kept" "$pools/p"
whole_again 20 0 "the pool renamed"

mv "$pools/p.repl" "$TMP/kept"
gone_after "the sidecar renamed"
mv "$TMP/kept" "$pools/p.repl"
whole_again 20 0 "the sidecar renamed"

cp -p "$pools/p" "$TMP/kept"
mv "$TMP/kept" "$pools/p"
gone_after "the pool replaced"
whole_again 20 0 "the pool replaced"

rm "$pools/p" "$pools/p.repl"
gone_after "the pool removed"
ok close

# alone POOL: a program begins that does not come again to a replica that it has lost.
alone() {
	configure "$(pool "$1")"
	ok set lanes 1
	stay_lost
	ok map "$TMP/alone" $MIB
	ok open 1
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
}

# left POOL WHAT: it is noticed, and the program ends without it.
left() {
	wait_for 10 given_up || fail "$2: still called up to date: $TEXT"
	wait_for 10 grep -q "pool '$1': its files were removed, renamed or replaced while it was open" "$TMP/serve.log" ||
		fail "$2: nothing in the target's log: $(tail -n 3 "$TMP/serve.log")"
	ok put 0 4096 2
	works || fail "$2: the program does not go on: $TEXT"
	ok close
	wait_for 10 no_sessions || fail "$2: the session stays"
	rm "$TMP/alone"*
}

# is_known POOL STATE WHAT: when its files are where they were.
is_known() {
	[ "$(ctl info "$SERVE_USER@127.0.0.1:$SERVE_PORT/$1" --json | member state)" = "$2" ] ||
		lost "$3: not $2: $(ctl info "$SERVE_USER@127.0.0.1:$SERVE_PORT/$1" 2>&1)"
}

# linked POOL FILE STATE: a file of its, or a directory, goes elsewhere, and a link takes its place: as what it is known when
# it is back.
linked() {
	alone "$1"
	mv "$pools/$2" "$TMP/kept"
	ln -s "$TMP/kept" "$pools/$2"
	left "$1" "$2 of pool $1 is a link"
	rm "$pools/$2"
	mv "$TMP/kept" "$pools/$2"
	is_known "$1" "$3" "$2 of pool $1 was a link"
}

linked file file inconsistent
linked sidecar sidecar.repl unknown
linked above/dir above unknown
printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M part\n2M rest\n' >"$pools/set"
linked set part inconsistent
printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M parts/0\n2M other\n' >"$pools/others"
linked others parts unknown

# The pool directory: another one has its name, as where a disk is mounted over it.
alone hidden
mv "$pools" "$TMP/away"
cp -a "$TMP/away" "$pools"
left hidden "another pool directory"
rm -r "$pools"
mv "$TMP/away" "$pools"
is_known hidden unknown "the pool directory is back"

# The disk with the pool is mounted late. Until then another one is made in its place, and copied into twice, neither time
# to the end: what that one has by then the other one lacks.
size=$((16 * MIB))
configure "$(pool m)"
ok set lanes 1
ok set reconnect-min 100
ok set reconnect-max 200
ok set resync-rate 3M
ok map "$TMP/m" $size
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
port=$SERVE_PORT
mkdir "$TMP/disk" "$TMP/other"

# serve_files FROM TO: the target was off, and has other files when it comes back.
serve_files() {
	hurt serve
	wait_for 20 degraded 0 || fail "the loss is not noticed: $TEXT"
	mv "$pools"/m* "$2"
	[ -z "$(ls "$1")" ] || mv "$1"/m* "$pools"
}

# copied_to MIB: so much of the other one is there.
copied_to() {
	cmp -n $(($1 * MIB)) "$TMP/m" "$pools/m"
}

serve_files "$TMP/other" "$TMP/disk"
ok put 0 $MIB 2
ok persist 0 0 $MIB
heal_at "$port"
wait_for 20 copied_to 2 || fail "no other one is made: $TEXT"
hurt kill
wait_for 20 copied_to 5 || fail "it is not gone on with: $TEXT"
serve_files "$TMP/disk" "$TMP/other"
ok stat 0
is data 1
heal_at "$port"
wait_for 20 established 0 || fail "it does not come back: $TEXT"
equal "$TMP/m" "$pools/m"
ok close
stop_api
