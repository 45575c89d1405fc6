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
no_create "its parts hold 8384512 bytes" "8M rem.part"
no_create "line 2: .*'/etc/part' is not beneath the pool directory" "16M /etc/part"
no_create "line 2: .*component '..' begins with a dot" "16M ../part"
no_create "line 3: a replica has no replicas on other machines" "16M rem.part" "REPLICA host other"
no_create "line 3: OPTION .NOHDR. is neither" "16M rem.part" "OPTION NOHDR"
no_create "line 2: AUTO is for device DAX, .*'rem.part' is not there" "AUTO rem.part"
no_create "line 4: 'rem.part' is there already" "16M rem.part" REPLICA "16M rem.part"
mkdir "$POOLS/d"
no_create_in() {
	pattern=$1
	shift
	target_set rem.set "$@"
	pmdk_fails "$pattern" pmempool create obj --layout=test "$TMP/local.set"
	rm -f "$TMP/part0"
}
no_create_in "line 2: AUTO is for device DAX, .*'d' is a directory" "AUTO d"
no_create_in "'d' is a directory: a set of those needs OPTION SINGLEHDR" "16M d"
no_create_in "line 3: 'p' is no directory: directories and files can't be mixed" "16M d" "16M p"
no_create_in "line 3: 'd' is a directory: directories and files can't be mixed" "16M p" "16M d"
no_create_in "can't be mixed in a set: all sections" "OPTION SINGLEHDR" "16M d" REPLICA "16M p"
rmdir "$POOLS/d"
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
# The checksum of zeros is zero.
dd if=/dev/zero of="$POOLS/rem.part" bs=4096 count=1 conv=notrunc 2>/dev/null
: >"$TMP/rpmem.log"
pmdk_fails "header of part 'rem.part' is damaged" "$FILL" check "$TMP/local.set" test
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
lose_and_sync "$filled"

# A replica of another pool is not taken for this one's, and not mended from it. Its text is libpmemobj's, which
# compares what the target gives back.
cp "$TMP/part0" "$TMP/mine"
pmdk pmempool rm "$TMP/local.set" >/dev/null 2>&1 || fail "rm"
make_pool
cp "$TMP/mine" "$TMP/part0"
pmdk_fails "local.set: wrong replica UUID" "$FILL" check "$TMP/local.set" test
pmdk_fails "inconsistent poolset uuids between replicas 0 and 1" pmempool sync "$TMP/local.set"

# Nor one of another layout or size.
pmdk pmempool rm "$TMP/local.set" >/dev/null 2>&1 || fail "rm"
make_pool
pmdk_fails 'wrong layout ."other".' "$FILL" check "$TMP/local.set" other
printf 'PMEMPOOLSET\n20M %s\nREPLICA %s rem.set\n' "$TMP/part0" "$T" >"$TMP/local.set"
truncate -s 20M "$TMP/part0"
pmdk_fails "has room for 16777216 bytes with its header, the local pool has 20971520" \
	"$FILL" check "$TMP/local.set" test
