# SPDX-License-Identifier: BSD-3-Clause
# PMDK's example "map" on libpmemobj: keys go into a tree, a hash map and so on, in turns; a line for each that is found.
stock "stdbuf"
kinds=(hashmap_tx hashmap_atomic hashmap_rp btree rtree rbtree skiplist)
kind=0
base=0
O=$EXAMPLES/libpmemobj-dev/examples
example mapcli -I"$O" -I"$O/map" -I"$O/hashmap" -I"$O/tree_map" -I"$O/list_map" "$O"/map/mapcli.c \
	"$O"/map/map.c "$O"/map/map_*.c "$O"/hashmap/*.c "$O"/tree_map/*.c "$O"/list_map/*.c \
	-lpmemobj -pthread

begin() {
	kind=$(((kind + 1) % ${#kinds[@]}))
	base=0
	pmempool create obj --layout=map --size=16M "$pool" || fail "pmempool create"
}

# Each key is asked for when it is in.
write_on() {
	run "$pool" killed stdbuf -oL "$TMP/mapcli" "${kinds[kind]}" "$pool" 1 \
		< <(seq $((base + 1)) 100000000 | sed 's/.*/i &\nc &/')
}

# All up to those that were told are found by a program that begins anew, and no later one but one.
check() {
	pmempool_check "$1"
	told=$((base + $(grep -c '^1$' "$2")))
	found=$(seq $((told + 2)) | sed 's/^/c /' | timeout 30 "$TMP/mapcli" "${kinds[kind]}" "$1" 1 |
		grep -x '[01]' | tr -d '\n')
	[[ $found =~ ^1{$told}1?0+$ ]] || lost "${kinds[kind]}: $told keys were told: $found"
	[ "${found:told:1}" = 0 ] || told=$((told + 1))
	base=$told
}
