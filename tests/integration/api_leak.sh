# SPDX-License-Identifier: BSD-3-Clause
# Opening and closing again and again, with and without success, leaves no descriptor, thread or byte.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
count=${API_LEAK_COUNT:-20}
GLIBC_TUNABLES=glibc.malloc.tcache_count=0 timeout $((count + 150)) \
	"$BUILD/tests/integration/api_leak" "$TMP/p" $MIB "$count" $((count * 5)) \
	"$(pool missing)" identity="$TMP/key" known-hosts="$TMP/known_hosts" \
	target="$(pool p)" || fail "something is left"
