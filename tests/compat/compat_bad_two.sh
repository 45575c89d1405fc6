# SPDX-License-Identifier: BSD-3-Clause
# Of two damaged replicas one pmempool sync mends both.
. "$(dirname "$0")/compat_lib.sh"
two_targets
make_pool
filled=$(fill 20) || exit 1
for i in 1 2; do
	printf x | dd of="$TMP/pools$i/part" bs=1 seek=30 conv=notrunc 2>/dev/null
done
pmdk_fails "header of part 'part' is damaged" "$FILL" check "$TMP/local.set" test
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out" "$TMP/rpmem.log")"
[ "$(grep -c "was damaged, is made anew$" "$TMP/rpmem.log")" = 2 ] || fail "not both are made anew: $(cat "$TMP/rpmem.log")"
[ "$(target_state 1) $(target_state 2)" = "up-to-date up-to-date" ] || fail "they are $(target_state 1) $(target_state 2)"
[ "$(walk)" = "$filled" ] || lost "not what was filled"

# From each of them.
lose_and_sync "$filled"
target_ctl 1 remove --force "$(target_pool 1)" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
lose_and_sync "$filled"
