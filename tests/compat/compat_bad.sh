# SPDX-License-Identifier: BSD-3-Clause
# What does not fit on the two sides is refused with its reason, and no file is left by a failed create.
. "$(dirname "$0")/compat_lib.sh"
start_compat
local_set rem.set

# no_create PATTERN LINE...: with that set on the target.
no_create() {
	pattern=$1
	shift
	target_set rem.set "$@"
	: >"$TMP/rpmem.log"
	pmdk_fails "$pattern" pmempool create obj --layout=test "$TMP/local.set"
	[ "$(ls -A "$POOLS")" = "$(printf '.repld\nrem.set')" ] || fail "left: $(ls -A "$POOLS")"
	rm -f "$TMP/part0"
}

no_create "line 2: '16' is no size|line 2: a part of 16 bytes" "16 rem.part"
no_create "line 3: OPTION stands before the parts" "16M rem.part" "OPTION NOHDRS"
no_create "its parts hold 8384512 bytes" "8M rem.part"
no_create "line 2: .*'/etc/part' is not beneath the pool directory" "16M /etc/part"
no_create "line 2: .*component '..' begins with a dot" "16M ../part"
no_create "line 3: a REPLICA of a replica" "16M rem.part" "REPLICA" "16M other"
no_create "OPTION NOHDRS leaves no place for attributes" "OPTION NOHDRS" "16M rem.part"
no_create "OPTION SINGLEHDR stands in the set file of the target only" "OPTION SINGLEHDR" "16M rem.part"
rm "$POOLS/rem.set"
pmdk_fails "pool set file 'rem.set': not found" pmempool create obj "$TMP/local.set"
printf 'PMEMPOOLSET\n16M %s\nREPLICA %s ../rem.set\n' "$TMP/part0" "$T" >"$TMP/up.set"
pmdk_fails "name" pmempool create obj "$TMP/up.set"

target_set rem.set "16M rem.part"
make_pool
fill 20 >/dev/null
: >"$TMP/rpmem.log"

# A missing part, a cut one, a damaged header: by name. The last one is mended by sync.
mv "$POOLS/rem.part" "$POOLS/away"
pmdk_fails "its part 'rem.part' is missing" "$FILL" check "$TMP/local.set" test
truncate -s 8M "$POOLS/away" && mv "$POOLS/away" "$POOLS/rem.part"
pmdk_fails "'rem.part' has 8388608 bytes, the set file says 16777216" \
	"$FILL" check "$TMP/local.set" test
truncate -s 16M "$POOLS/rem.part"
printf x | dd of="$POOLS/rem.part" bs=1 seek=30 conv=notrunc 2>/dev/null
pmdk_fails "header of part 'rem.part' is damaged" "$FILL" check "$TMP/local.set" test
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
filled=$(walk) || exit 1
lose_and_sync "$filled"

# A replica of another pool is not taken for this one's.
cp "$TMP/part0" "$TMP/mine"
pmdk pmempool rm "$TMP/local.set" >/dev/null 2>&1 || fail "rm"
make_pool
cp "$TMP/mine" "$TMP/part0"
pmdk_fails "." "$FILL" check "$TMP/local.set" test
