# SPDX-License-Identifier: BSD-3-Clause
# A replica that only a demotion has called up to date is none that is known to be whole: beside one that has been filled since,
# or that can't be opened, it gives nothing to pmempool sync, and nothing is made anew from it.
. "$(dirname "$0")/compat_lib.sh"
two_targets
printf 'PMEMPOOLSET\n8M part\n12M second\n' >"$TMP/pools2/set2"
make_pool
filled=$(fill 20) || exit 1

# left_behind: set1 was lost, set2 and the pool were gone on with, and set1 was a primary for a moment.
left_behind() {
	stream_loses 1 2
	for command in promote demote; do
		target_ctl 1 "$command" "$(target_pool 1)" >"$TMP/out" 2>&1 || fail "$command: $(cat "$TMP/out")"
	done
	[ "$(target_state 1)" = up-to-date ] || fail "it is $(target_state 1)"
}

# taken_from_2: with set1 removed all is had again from set2.
taken_from_2() {
	target_ctl 1 remove --force "$(target_pool 1)" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
	pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
	has_told "$told"
}

# The other one is made anew from the local part.
left_behind
target_ctl 2 remove --force "$(target_pool 2)" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
rm "$TMP/part0"
pmdk_fails "set1 .*behind.*set2.*replctl remove --force" pmempool sync "$TMP/local.set"
[ ! -e "$TMP/part0" ] || lost "the local part is made from what lacks something"
taken_from_2

# The other one's first part is away, and so it seems to be damaged.
fill 5 >/dev/null
left_behind
mv "$TMP/pools2/part" "$TMP/away"
rm "$TMP/part0"
pmdk_fails "set1: was not closed by its last program, and .*set2, which can't be opened, may have more" \
	pmempool sync "$TMP/local.set"
[ -e "$TMP/pools2/second" ] || lost "what is left of the other one is removed"
mv "$TMP/away" "$TMP/pools2/part"
taken_from_2
