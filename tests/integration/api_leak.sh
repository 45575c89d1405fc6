# SPDX-License-Identifier: BSD-3-Clause
# Opening and closing again and again, with and without success, leaves no descriptor, thread or memory.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
timeout 55 "$BUILD/tests/integration/api_leak" "$TMP/p" $MIB "${API_LEAK_COUNT:-20}" \
	"${API_LEAK_COUNT:-60}" "$(pool missing)" identity="$TMP/key" \
	known-hosts="$TMP/known_hosts" target="$(pool p)" || fail "something is left"
