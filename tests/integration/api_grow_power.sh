# SPDX-License-Identifier: BSD-3-Clause
# Behind a power cut the local file is as long as its record says: when it has grown in use, and when it had grown before.
. "$(dirname "$0")/cut_lib.sh"

cut_at() {
	power_cut
	[ "$(stat -c %s "$file")" = "$1" ] || fail "$2: it has $(stat -c %s "$file") bytes, the record says $1"
}

own_disk 96M
begin $((4 * MIB)) 1
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))
sync "$file"

# Longer by what is written behind its end, as some programs do: its length is on media when that is.
head -c $((4 * MIB)) /dev/zero >>"$file"
ok extend $((8 * MIB))
ok grow $((8 * MIB))
cut_at $((8 * MIB)) "grown in use"
begin $((8 * MIB))
ok compare 0
same
ok close
stop_api

head -c $((4 * MIB)) /dev/zero >>"$file"
begin $((12 * MIB))
cut_at $((12 * MIB)) "grown before"
begin $((12 * MIB))
ok compare 0
same
ok close
stop_api
