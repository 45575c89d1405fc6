# SPDX-License-Identifier: BSD-3-Clause
# With after-crash = dirty-map the disk of the program's own file loses what was written back: the program and the library are
# both told, whoever syncs first, and the next opening compares the replica. One before this
# machine's memory forgets what was lost gives that to the disk; while the disk does not take it
# none opens the file, and the memory keeps it. So does one behind another that was refused, since its
# sync was the one that lost something, with after-crash = compare, too.
. "$(dirname "$0")/cut_lib.sh"

# A disk that has less space than it says; the middle of the file has none of it.
thin=$TMP/thin
mkdir "$thin" "$pools" && mount -t tmpfs -o size=48m tmpfs "$thin" || exit 77
truncate -s 64m "$thin/disk"
# Without a journal, for which it would be one error too many.
mkfs.ext4 -q -F -O ^has_journal -b 4096 -m 0 -I 256 "$thin/disk" && mount -o loop "$thin/disk" "$pools" || exit 77
trap 'code=$?; umount -l "$pools" "$thin"; (exit $code); cleanup' EXIT
make_keys
start_serve
settings="after-crash dirty-map"

# The space behind a MiB of the file is gone, and for as long as the filler is there none comes instead.
thin_out() {
	local at

	at=$(filefrag -v -b4096 "$file" | awk -F'[^0-9]+' -v want=$((4 * 256)) '
		/^ *[0-9]+:/ && $3 <= want && want + 255 <= $4 { print $5 + want - $3 }')
	[ -n "$at" ] || fail "where is it: $(filefrag -v -b4096 "$file")"
	fallocate -p -o $((at * 4096)) -l $MIB "$thin/disk" || exit 77
	cat /dev/zero >"$thin/filler" 2>/dev/null
}

# lose SEED [FLAG]: the replica gets a MiB that the disk does not.
lose() {
	begin $((16 * MIB)) ${2-}
	thin_out
	ok put $((4 * MIB)) $MIB "$1"
	ok persist 0 $((4 * MIB)) $MIB
}

# What the program has stored, and the replica has.
stored() {
	dd if="$file" iflag=skip_bytes,count_bytes skip=$((4 * MIB)) count=$MIB bs=$MIB status=none
}

# As the disk has the file, it is no copy of the replica.
again() {
	umount -l "$pools"
	mount -o loop "$thin/disk" "$pools" || fail "mount"
	begin $((16 * MIB))
	ok compare 0
	same
	ok close
	stop_api
}

# As the memory of this machine still has it, it is what the disk is given.
reopened() {
	stored >"$TMP/stored"
	begin $((16 * MIB))
	ok close
	stop_api
	again
	stored | cmp - "$TMP/stored" || lost "what the program had stored went with the memory"
}

head -c $((16 * MIB)) /dev/urandom >"$file"
sync "$file"
lose 1 1
refused REPL_E_IO "" sync
rm "$thin/filler"
ok close
stop_api
again

lose 2
api close # whatever becomes of the record
refused REPL_E_IO "" sync
rm "$thin/filler"
stop_api
again

# Nothing was written to the disk meanwhile but what others had to write.
lose 3 1
refused REPL_E_IO "" sync
rm "$thin/filler"
ok close
stop_api
reopened

# lose_killed SEED
lose_killed() {
	lose "$1"
	refused REPL_E_IO "" sync
	kill -KILL "$(api_child)"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 no_sessions || fail "sessions stay"
}

# still_thin COMMAND...: which is refused, as often as it is tried.
still_thin() {
	stored >"$TMP/stored"
	for _ in 1 2 3; do
		"$@" || fail "$*: with data that the disk has not taken"
		stored | cmp - "$TMP/stored" || lost "what the disk does not take went with a try"
	done
	rm "$thin/filler"
	# The kernel has told nobody of what it has tried since.
	sync "$file" 2>/dev/null
}

not_opened() {
	start_api
	configure "$(pool p)"
	ok set $settings
	ok map "$file" $((16 * MIB))
	refused "REPL_E_(IO|NOSPC)" "local file" open
	stop_api
}

not_synced() {
	! ctl sync "$file" "$(pool p)" >"$TMP/sync.log" 2>&1
}

lose_killed 4
still_thin not_opened
reopened

# So does replctl sync.
lose_killed 5
still_thin not_synced
ctl sync "$file" "$(pool p)" >"$TMP/sync.log" 2>&1 || fail "replctl sync"
again
stored | cmp - "$TMP/stored" || lost "what replctl sync has copied went with the memory"

# By after-crash = compare nothing syncs what a program leaves that is killed; its end in order does, and says so in the record.
settings="after-crash compare"

lose_closed() {
	lose "$1"
	ok close
	stop_api
}

lose_unsynced() {
	lose "$1"
	kill -KILL "$(api_child)"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 no_sessions || fail "sessions stay"
	rm "$file.repl"
}

# opening_refused WHY
opening_refused() {
	ready $((16 * MIB))
	refused "REPL_E_(IO|NOSPC)" "$1" open
	stop_api
	rm "$thin/filler"
}

lose_closed 6
ctl why "$file" >"$TMP/why" 2>&1 || fail "why: $(cat "$TMP/why")"
grep -q "or a sync of the file has failed" "$TMP/why" || fail "why: $(cat "$TMP/why")"
opening_refused "of which a sync may have lost something"
reopened

lose_unsynced 7
opening_refused "syncing the local file"
reopened

# sync_refused WHY [OPTION]
sync_refused() {
	stored >"$TMP/stored"
	ctl sync ${2-} "$file" "$(pool p)" >"$TMP/sync.log" 2>&1 && fail "replctl sync of what the disk does not take"
	grep -q "$1" "$TMP/sync.log" || fail "no word of it: $(cat "$TMP/sync.log")"
	rm "$thin/filler"
	ctl sync "$file" "$(pool p)" >"$TMP/sync.log" 2>&1 || fail "replctl sync: $(cat "$TMP/sync.log")"
	again
	stored | cmp - "$TMP/stored" || lost "what replctl sync has copied went with the memory"
}

lose_closed 8
ctl sync --dry-run "$file" "$(pool p)" >"$TMP/sync.log" 2>&1 || fail "replctl sync --dry-run: $(cat "$TMP/sync.log")"
grep -q "or a sync of it has failed: it may lack" "$TMP/sync.log" || fail "no word of it: $(cat "$TMP/sync.log")"
sync_refused "a sync may have lost something"

lose_unsynced 9
sync_refused "syncing $file" --dry-run

lose_unsynced 10
sync_refused "syncing $file"
