# SPDX-License-Identifier: BSD-3-Clause
# Behind a power cut the local file is as long as its record says: when it has grown in use, and when it had grown before.
. "$(dirname "$0")/full_lib.sh"

# The file's, not the target's.
pools=$TMP/mine
mkdir "$pools"
truncate -s 96M "$TMP/disk"
mkfs.ext4 -q -F -b 4096 -m 0 "$TMP/disk" && mount -o loop "$TMP/disk" "$pools" || exit 77
trap 'code=$?; umount -l "$pools"; (exit $code); cleanup' EXIT
file=$pools/local

begin() {
	start_api
	configure "$(pool p)"
	ok set lanes 1
	ok map "$file" "$1"
	ok open
}

power_cut() {
	shut_down
	kill -KILL "$(api_child)"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 no_sessions || fail "sessions stay"
	umount -l "$pools"
	mount_again
	[ "$(stat -c %s "$file")" = "$1" ] || fail "$2: it has $(stat -c %s "$file") bytes, the record says $1"
}

make_keys
start_serve
start_api
configure "$(pool p)"
ok set lanes 1
ok map "$file" $((4 * MIB))
ok open 1
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))
sync "$file"

# Longer by what is written behind its end, as some programs do: its length is on media when that is.
head -c $((4 * MIB)) /dev/zero >>"$file"
ok extend $((8 * MIB))
ok grow $((8 * MIB))
power_cut $((8 * MIB)) "grown in use"
begin $((8 * MIB))
ok compare 0
same
ok close
stop_api

head -c $((4 * MIB)) /dev/zero >>"$file"
begin $((12 * MIB))
power_cut $((12 * MIB)) "grown before"
begin $((12 * MIB))
ok compare 0
same
ok close
stop_api
