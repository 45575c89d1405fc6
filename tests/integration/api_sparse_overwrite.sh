# SPDX-License-Identifier: BSD-3-Clause
# What a replica of a sparse pool has missed needs no journal where it has its space already: it comes back on a
# disk that has no room for one. Where some of it has none the replica stays the copy that it is.
if [ -z "${DISK-}" ]; then
	DISK=tmpfs bash "$0" || exit
	DISK=ext4 exec bash "$0"
fi
export DISK
. "$(dirname "$0")/full_lib.sh"

start_on_disk "$DISK" 48m
configure "$(pool p)"
ok set reconnect-max 200
ok set lanes 2
ok map "$TMP/local" $((24 * MIB))
ok open 5
for at in 0 8 14; do
	ok put $((at * MIB)) $((4 * MIB)) 1
	ok persist 0 $((at * MIB)) $((4 * MIB))
done

# A journal of it would be larger than what is left.
leave $((2 * MIB))
hurt kill
for at in 0 8 14; do
	ok put $((at * MIB)) $((4 * MIB)) 2
	ok persist 0 $((at * MIB)) $((4 * MIB))
done
back "what has space"
[ "$(member_of state)" = up-to-date ] || fail "not up to date: $(cat "$TMP/info")"
ok read 0 0 $((8 * MIB)) $((4 * MIB))
same

# The same with 4 KiB that lie in a hole, between two that don't.
hurt kill
for range in "$((8 * MIB)) $((4 * MIB))" "$((13 * MIB)) 4096" "$((14 * MIB)) $((4 * MIB))"; do
	ok put $range 3
	ok persist 0 $range
done
still_a_copy "a hole"
rm -f "$pools/.filler"
back "room for the hole"
ok close
equal "$TMP/local" "$pools/p"
