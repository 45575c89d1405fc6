# SPDX-License-Identifier: BSD-3-Clause
# Of 8 aligned bytes, which memory takes at once, no replica gets one part, whatever part a range names.
. "$(dirname "$0")/api_lib.sh"

# whole OFF LEN: so many bytes are as in memory, on both replicas.
whole() {
	for pool in "$TMP/serve/pools/a" "$TMP/serve/pools/b"; do
		cmp -s -n "$2" "$TMP/p" "$pool" -i "$1" || lost "$2 bytes at $1 are torn in $pool"
	done
}

make_keys
start_serve
start_api
configure "$(pool a)"
ok set async-target "$(pool b)"
ok map "$TMP/p" "$MIB"
ok open 1
ok put 0 32 1
ok persist 0 11 6
# What is written before its drain, too.
ok put 4096 65536 2
ok flush 0 4097 65534
ok drain 0
ok put 80000 24 3
ok pair 0 80002 2 80017 3
# Where one word has both the first is sent alone.
ok put 81920 8 4
ok pair 0 81924 4 81921 2
ok put 90112 8 5
ok pair 0 90113 2 90115 1
ok close
whole 8 16
whole 4096 65536
whole 80000 8
whole 80016 8
whole 81920 8
whole 90112 8
