# SPDX-License-Identifier: BSD-3-Clause
# A primary whose program has let its file grow by a hole has all of its space as a replica again; where the disk has no room
# for that it is sparse, and stays a whole copy on the full disk. One that tells nobody has what it has made of its file as well,
# by zeros and by data.
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
else
	left_out "no file system of its own"
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

target=$(pool g)
# size_is BYTES: of g, by its file, info and the list.
size_is() {
	[ "$(stat -c %s "$pools/g")" -eq "$1" ] || lost "the file has $(stat -c %s "$pools/g") bytes, not $1"
	[ "$(ctl info --json "$(pool g)" | member size)" -eq "$1" ] || fail "info: $(ctl info "$(pool g)" 2>&1)"
	ctl list "${target%/g}" >"$TMP/list" 2>&1 && ! grep -q damaged "$TMP/list" || fail "$(cat "$TMP/list")"
}

# restored COMMAND...: what is restored is all of it, before and after.
restored() {
	ctl restore "$(pool g)" "$TMP/before" >/dev/null || fail "restore"
	equal "$TMP/before" "$pools/g"
	cp "$pools/g" "$TMP/whole"
	"$@" || fail "$*"
	equal "$TMP/whole" "$pools/g"
	ctl restore "$(pool g)" "$TMP/after" >/dev/null || fail "restore"
	equal "$TMP/after" "$TMP/whole"
	rm "$TMP"/before* "$TMP"/after*
}

head -c $MIB /dev/urandom >"$TMP/own"
ctl sync "$TMP/own" "$(pool g)" >/dev/null 2>&1 || fail "sync"
ctl promote "$(pool g)" >/dev/null || fail "promote"
truncate -s +1M "$pools/g"
size_is $((2 * MIB))
restored ctl demote "$(pool g)" >/dev/null
size_is $((2 * MIB))
[ "$(ctl info --json "$(pool g)" | member sparse)" = False ] || fail "what it has grown by has no space"

ctl promote "$(pool g)" >/dev/null || fail "promote"
printf x >>"$pools/g"
size_is $((2 * MIB + 1))
ctl_fails 1 "own has 1048576 bytes, the replica .* has 2097153" verify "$TMP/own" "$(pool g)"
ctl newest "$(pool g)" >/dev/null || fail "newest"
restored ctl demote "$(pool g)" >/dev/null
size_is $((2 * MIB + 1))
# A replica that another hand has made longer is damaged all the same.
printf x >>"$pools/g"
ctl_fails 1 "the file was cut or grown by another hand" info "$(pool g)"

# The files that PMDK adds to a set in a directory.
mkdir "$pools/dir"
chown --reference="$pools" "$pools/dir"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n8M dir\n' >"$pools/set"
ctl create "$(pool set)" --size 2M >/dev/null && ctl promote --force "$(pool set)" >/dev/null || fail "a set"
for file in 1 2; do
	truncate -s 2M "$pools/dir/00000$file.pmem"
	chown --reference="$pools" "$pools/dir/00000$file.pmem"
done
[ "$(ctl info --json "$(pool set)" | member size)" -eq $((6 * MIB)) ] || fail "$(ctl info "$(pool set)")"
ctl demote "$(pool set)" >/dev/null || fail "demote of a set"
printf x | dd of="$pools/dir/000001.pmem" conv=notrunc status=none
ctl restore "$(pool set)" "$TMP/all" >/dev/null || fail "restore of a set"
cat "$pools"/dir/*.pmem | cmp - "$TMP/all" || lost "the set is not all there"
