# SPDX-License-Identifier: BSD-3-Clause
# A set in two files is opened where it lies by PMDK's programs once it was promoted, as one in one file is; and one whose header nobody knows is not called a primary.
. "$(dirname "$0")/compat_lib.sh"
start_compat

target_set rem.set "9M $POOLS/p" "8M $POOLS/q"
local_set rem.set
make_pool
filled=$(fill 200) || exit 1
primary
replica
filled=$(fill 5) || exit 1
lose_and_sync "$filled"

# A header that nobody knows is not called one that a program may use.
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
make_pool
printf x | dd of="$POOLS/p" bs=1 seek=30 conv=notrunc 2>/dev/null
! ctl promote "$T/rem.set" >"$TMP/out" 2>&1 || fail "promoted with a damaged header"
grep -q "header of part 'p' is damaged" "$TMP/out" || fail "it says: $(cat "$TMP/out")"
