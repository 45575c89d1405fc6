# SPDX-License-Identifier: BSD-3-Clause
# What was flushed before a drain may be more than the link carries in op-timeout: no replica is lost by that.
OWN_PROGRAM=1
. "$(dirname "$0")/compat_lib.sh"
. "$(dirname "$0")/../integration/far_lib.sh"
start_target() {
	start_far
	T=$FAR_TARGET
}
start_compat
echo "on-loss = fail" >>"$TMP/repl.conf"
target_set many.set "OPTION NOHDRS" "32M many.part"
# 4 MB a second, of which a drain has 3.75 seconds by default.
tc qdisc add dev "rf$$" root tbf rate 32mbit burst 64kb latency 400ms 2>"$TMP/tc.log" || exit 77
pmdk "$BUILD/tests/compat/rpmem_abi" "$T" many >"$TMP/out" 2>&1 || fail "ends with $?: $(cat "$TMP/out")"
tr -d m <"$POOLS/many.part" | cmp - /dev/null >&2 || lost "bytes are missing"
