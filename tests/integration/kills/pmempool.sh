# SPDX-License-Identifier: BSD-3-Clause
# pmempool itself makes a pool, then goes round four states of two features of its; a line for each command that ended, with
# the state that it left. One that is lost is seen: that before it is neither the next one nor the same.
stock "pmempool"
begin() {
	was=
}

write_on() {
	run "$pool" killed sh -c '
		pool=$1 state=$2
		feature() {
			pmempool feature "$@" "$pool"
		}
		if [ -z "$state" ]; then
			# With it CKSUM_2K can not be turned off.
			pmempool create obj --layout=killed --size=16M "$pool" && feature --disable SHUTDOWN_STATE &&
				feature --enable CHECK_BAD_BLOCKS && echo 11 || exit
			state=11
		fi
		while case $state in
		11) feature --disable CHECK_BAD_BLOCKS && state=01 ;;
		01) feature --disable CKSUM_2K && state=00 ;;
		00) feature --enable CHECK_BAD_BLOCKS && state=10 ;;
		10) feature --enable CKSUM_2K && state=11 ;;
		esac && echo $state; do
			:
		done' sh "$pool" "$was"
}

# As the last command left it, or as the one that was killed would have. What differs from the file that was left is the
# header that it was writing.
check() {
	told=$(tail -n 1 "$2")
	told=${told:-$was}
	[ "$told" ] || return 0
	pages_differ "$1" "$3" 1
	pmempool_check "$1"
	was=$(pmempool feature --query CHECK_BAD_BLOCKS "$1")$(pmempool feature --query CKSUM_2K "$1")
	case $told,$was in
	11,11 | 11,01 | 01,01 | 01,00 | 00,00 | 00,10 | 10,10 | 10,11) ;;
	*) lost "the features were left as $told, and are $was" ;;
	esac
}
