# SPDX-License-Identifier: BSD-3-Clause
# Stock PMDK replicates a pool set with a REPLICA line, and gets its local part back from there.
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set rem.set "16M rem.part"
local_set rem.set

make_pool
[ "$(stat -c %a "$POOLS/rem.part")" = 600 ] || fail "mode of the part"
[ "$(stat -c %s "$POOLS/rem.part")" = 16777216 ] || fail "size of the part"
filled=$(fill 200) || exit 1
pmdk pmempool info "$TMP/local.set" >"$TMP/out" 2>&1 || fail "info: $(cat "$TMP/out")"

# The target's part is a pool of PMDK's that PMDK reads there.
target_run pmempool info "$POOLS/rem.part" >"$TMP/out" 2>&1 || fail "info there: $(cat "$TMP/out")"
grep -q "Checksum.*OK" "$TMP/out" || fail "info there: $(cat "$TMP/out")"

lose_and_sync "$filled"
more=$(fill 50) || exit 1
lose_and_sync "$more"

# Dropped, it leaves the set file alone; added again, it has all.
printf 'PMEMPOOLSET\n16M %s\n' "$TMP/part0" >"$TMP/alone.set"
pmdk pmempool transform "$TMP/local.set" "$TMP/alone.set" >"$TMP/out" 2>&1 ||
	fail "transform, drop: $(cat "$TMP/out")"
# (It takes no set that has a remote replica.)
pmdk pmempool check "$TMP/alone.set" >"$TMP/out" 2>&1 || lost "check: $(cat "$TMP/out")"
[ ! -e "$POOLS/rem.part" ] || fail "the part is still there"
[ -e "$POOLS/rem.set" ] || fail "the set file is gone"
pmdk pmempool transform "$TMP/alone.set" "$TMP/local.set" >"$TMP/out" 2>&1 ||
	fail "transform, add: $(cat "$TMP/out")"
lose_and_sync "$more"

[ "$(echo "$TMP"/part0*)" = "$TMP/part0" ] || fail "beside the part: $(echo "$TMP"/part0*)"
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
[ "$(ls -A "$POOLS")" = "$(printf '.repld\nrem.set')" ] || fail "left: $(ls -A "$POOLS")"
