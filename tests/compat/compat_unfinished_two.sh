# SPDX-License-Identifier: BSD-3-Clause
# Beside a replica into which a copy was begun and not finished the other one is not the one to be removed: the next step that a
# refused pmempool sync names is to remove the half one, and the sync then takes the other.
. "$(dirname "$0")/compat_lib.sh"
two_targets

# syncs_after SET: the sync is refused, tells to remove that set's replica, and takes the other one.
syncs_after() {
	rm "$TMP/part0"
	pmdk_fails "next: replctl remove --force $at/$1," pmempool sync "$TMP/local.set"
	! grep -q "set1 is behind\|set1 .*was not closed" "$TMP/out" || lost "the other one is to go: $(cat "$TMP/out")"
	[ ! -e "$TMP/part0" ] || fail "a refused sync has made the local part"
	target_ctl "${1#set}" remove --force "$at/$1" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
	pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
	rm -f "$TMP/rpmem.log"
}

# Gone on with alone, and lost amid a copy into it.
make_pool
filled=$(fill 20) || exit 1
stream_loses 1 2
target_marks 2 inconsistent
syncs_after set2
# What was told when the first one was still there.
has_told "$before"

# Of one generation, and neither is whole.
filled=$(fill 5) || exit 1
target_marks 1 outdated
target_marks 2 inconsistent
syncs_after set2
[ "$(walk)" = "$filled" ] || lost "not what was filled"

# It is the first one that pmempool looks at.
stream_loses 2 1
target_marks 1 inconsistent
rm "$TMP/part0"
pmdk_fails "begun and not finished.*next: replctl remove --force $at/set1," pmempool sync "$TMP/local.set"
target_ctl 1 remove --force "$at/set1" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
has_told "$before"
