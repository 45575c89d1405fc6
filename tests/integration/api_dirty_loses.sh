# SPDX-License-Identifier: BSD-3-Clause
# With after-crash = dirty-map the disk of the program's own file loses what was written back: the program and the library are
# both told, whoever syncs first, and the next opening compares the replica.
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

# As the disk has the file, it is no copy of the replica.
again() {
	stop_api
	umount -l "$pools"
	mount -o loop "$thin/disk" "$pools" || fail "mount"
	begin $((16 * MIB))
	ok compare 0
	same
	ok close
	stop_api
}

head -c $((16 * MIB)) /dev/urandom >"$file"
sync "$file"
lose 1 1
refused REPL_E_IO "" sync
rm "$thin/filler"
ok close
again

lose 2
api close # whatever becomes of the record
refused REPL_E_IO "" sync
rm "$thin/filler"
again
