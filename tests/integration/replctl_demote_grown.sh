# SPDX-License-Identifier: BSD-3-Clause
# A primary whose program has let its file grow by a hole has all of its space as a replica again; where the disk has no room
# for that it is sparse, and stays a whole copy on the full disk.
. "$(dirname "$0")/full_lib.sh"
start_on_disk tmpfs 64M

# primary_grown POOL: it is a primary of 8 MiB, the second half of which is a hole.
primary_grown() {
	configure "$(pool "$1")"
	ok set lanes 1
	ok map "$TMP/local" $((4 * MIB))
	ok open 1
	ok put 0 $((4 * MIB)) 1
	ok persist 0 0 $((4 * MIB))
	ok close
	ctl promote "$(pool "$1")" >/dev/null || fail "promote"
	configure "$(pool q)"
	ok set lanes 1
	ok map "$pools/$1" $((4 * MIB))
	ok open 1
	ok extend $((8 * MIB))
	ok grow $((8 * MIB))
	ok put 0 $MIB 2
	ok persist 0 0 $MIB
	ok close
	rm "$TMP/local" "$TMP/local.repl"
}

primary_grown p
ctl demote "$(pool p)" >/dev/null || fail "demote"
[ "$(member_of sparse)" = False ] || fail "sparse"
[ $(($(stat -c '%b * 512' "$pools/p"))) -ge $((8 * MIB)) ] || fail "it has holes: $(stat -c '%b' "$pools/p")"
ctl remove --force "$(pool p)" >/dev/null || fail "remove"
ctl remove --force "$(pool q)" >/dev/null || fail "remove"

# What a file has behind its end is no space in it.
truncate -s 32M "$TMP/disk"
mkdir "$pools/e"
if mkfs.ext4 -q -F -m 0 "$TMP/disk" && mount -o loop "$TMP/disk" "$pools/e"; then
	chown --reference="$pools" "$pools/e"
	primary_grown e/p
	fallocate -n -o 8M -l 4M "$pools/e/p" || fail "fallocate"
	ctl demote "$(pool e/p)" >/dev/null || fail "demote"
	[ $(($(stat -c '%b * 512' "$pools/e/p"))) -ge $((12 * MIB)) ] || fail "it has a hole: $(stat -c %b "$pools/e/p")"
	ctl remove --force "$(pool q)" >/dev/null || fail "remove"
	umount -l "$pools/e"
fi

primary_grown p
leave $MIB
ctl demote "$(pool p)" >/dev/null || fail "demote"
[ "$(member_of sparse)" = True ] || fail "not sparse"
ctl restore "$(pool p)" "$TMP/local" >/dev/null || fail "restore"
equal "$TMP/local" "$pools/p"
configure "$(pool p)"
ok set lanes 1
ok set reconnect-min 100
ok set reconnect-max 200
ok map "$TMP/local" $((8 * MIB))
ok open
leave 0
ok put $((5 * MIB)) $MIB 3
ok persist 0 $((5 * MIB)) $MIB
still_a_copy "written on a full disk"
leave $((16 * MIB))
back "with room"
ok compare 0
same
ok close
stop_api
