# SPDX-License-Identifier: BSD-3-Clause
# pmempool itself makes a pool, then sets and clears a feature of its; a line for each command that ended.
stock "pmempool"
begin() {
	:
}

write_on() {
	run "$pool" killed sh -c '[ -e "$1" ] || { pmempool create obj --layout=killed --size=16M "$1" && echo made; }
		while pmempool feature --enable CHECK_BAD_BLOCKS "$1" && echo 1 &&
			pmempool feature --disable CHECK_BAD_BLOCKS "$1" && echo 0; do :; done' sh "$pool"
}

# As the last command left it, or as the one that was killed would have.
check() {
	told=$(tail -n 1 "$2")
	[ "$told" ] || [ -e "$TMP/made" ] || return 0
	: >"$TMP/made"
	pmempool_check "$1"
	now=$(pmempool feature --query CHECK_BAD_BLOCKS "$1") || lost "pmempool feature"
	[[ $now =~ ^[01]$ ]] || lost "the feature is '$now'"
}
