# SPDX-License-Identifier: BSD-3-Clause
# cut_lib.sh - on top of full_lib.sh for tests of a power cut of the program's machine.
#
#   own_disk BYTES     the file of the program, $file, is on an ext4 of its own; keys, repld serve, api_shell
#   ready BYTES        a new api_shell has mapped that much of the file, with $settings, a key and its value, if any
#   begin BYTES [FLAG]  and opens it
#   power_cut          the program is gone, and with it all of the file that is not on media
#   disk_cut           likewise, of a program that has ended
. "$(dirname "$0")/full_lib.sh"

# The file's, not the target's.
pools=$TMP/mine
file=$pools/local

own_disk() {
	mkdir "$pools"
	truncate -s "$1" "$TMP/disk"
	mkfs.ext4 -q -F -b 4096 -m 0 "$TMP/disk" && mount -o loop "$TMP/disk" "$pools" || exit 77
	trap 'code=$?; umount -l "$pools"; (exit $code); cleanup' EXIT
	make_keys
	start_serve
}

ready() {
	start_api
	configure "$(pool p)"
	ok set lanes 1
	[ -z "${settings-}" ] || ok set $settings
	ok map "$file" "$1"
}

begin() {
	ready "$1"
	ok open ${2-}
}

power_cut() {
	shut_down
	kill -KILL "$(api_child)"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 no_sessions || fail "sessions stay"
	umount -l "$pools"
	mount_again
}

disk_cut() {
	shut_down
	umount -l "$pools"
	mount_again
}
