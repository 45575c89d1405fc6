# SPDX-License-Identifier: BSD-3-Clause
# A pool's file that is cut while nobody has it open is whole again by either way of docs/RECOVERY.md, and so is a pool in the
# files of a set, where one that is cut or grown has moved all bytes behind it.
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

# set_of SET LINE LINE: a pool in such parts is open, and has grown.
set_of() {
	printf 'PMEMPOOLSET\nOPTION NOHDRS\n%s\n%s\n' "$2" "$3" >"$pools/$1"
	start_api
	configure "$(pool "$1")"
	ok set reconnect-min 100
	ok set reconnect-max 200
	ok map "$TMP/$1" $((8 * MIB))
	ok open 1
	ok extend $((10 * MIB))
	ok grow $((10 * MIB))
	ok put 0 $((10 * MIB)) 1
	ok persist 0 0 $((10 * MIB))
}

# away SET FILE SIZE: the file gets another size while the set is paused and misses an update.
away() {
	ctl pause "$TMP/$1" >/dev/null || fail "pause"
	ok put 8192 64 "$3"
	ok persist 0 8192 64
	truncate -s "$3" "$pools/$2"
	ctl resume "$TMP/$1" >/dev/null || fail "resume"
}

# was_found SET WHAT
was_found() {
	grep -q "pool '$1': its $2 by another hand" "$TMP/serve.log"
}

for dir in d e; do
	mkdir "$pools/$dir"
	chown --reference="$pools" "$pools/$dir"
done
set_of s "20M d" "20M e"
[ "$(stat -c %s "$pools/d/000000.pmem")" = $((8 * MIB)) ] || fail "$(ls -l "$pools/d")"
for size in $((7 * MIB)) $((7 * MIB + MIB / 2)); do
	away s d/000000.pmem "$size"
	whole_again "a file in a directory has $size bytes"
	cat "$pools/d/000000.pmem" "$pools/e/000001.pmem" | cmp -n $((10 * MIB)) - "$TMP/s" ||
		lost "a file in a directory has $size bytes: the pool differs"
done
was_found s "files were cut or grown" || fail "nothing in the target's log"
ok close
stop_api

set_of t "6M p0" "6M p1"
away t p0 $((3 * MIB))
wait_for 20 was_found t "file was cut" || fail "nothing in the target's log"
truncate -s $((6 * MIB)) "$pools/p0"
whole_again "a file of a set"
ok close
stop_api
