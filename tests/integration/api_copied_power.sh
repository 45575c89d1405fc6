# SPDX-License-Identifier: BSD-3-Clause
# What the local file holds when it is opened is there behind a power cut, though nobody has synced it: a file that was copied to
# its place where there was no record, and one that was written to, with a record, between two openings.
. "$(dirname "$0")/cut_lib.sh"

# whole TEXT: the file, and what is brought up from it.
whole() {
	cmp "$TMP/was" "$file" || lost "$1: the file is not what it was when it was opened"
	begin $((8 * MIB))
	ok compare 0
	same
	cmp "$TMP/was" "$file" || lost "$1: the file is another one once it was opened"
}

own_disk 96M
head -c $((8 * MIB)) /dev/urandom >"$TMP/was"
cp "$TMP/was" "$file"
begin $((8 * MIB)) 1
power_cut
whole "a new replica"

ok close
stop_api
rm "$file.repl"
head -c $((8 * MIB)) /dev/zero >"$file"
sync "$file"
dd if="$TMP/was" of="$file" bs=1M conv=notrunc status=none
begin $((8 * MIB))
power_cut
whole "a replica that equals it, without a record"

ok close
stop_api
head -c $((8 * MIB)) /dev/urandom >"$TMP/was"
dd if="$TMP/was" of="$file" bs=1M conv=notrunc status=none
begin $((8 * MIB))
power_cut
whole "with its record"
ok close
stop_api
