# SPDX-License-Identifier: BSD-3-Clause
# A pmempool sync that makes two replicas, and can't make the second one, ends before it copies anything: the first
# one, of zeros, is none that somebody restores from, and the next sync makes both.
. "$(dirname "$0")/compat_lib.sh"
two_targets
make_pool
filled=$(fill 50) || exit 1
for i in 1 2; do
	target_ctl $i remove --force "$(target_pool $i)" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
done

mv "$TMP/pools2/set2" "$TMP/away"
pmdk_fails "create: .*set2: .*not found" pmempool sync "$TMP/local.set"
grep -q "set1: created" "$TMP/rpmem.log" || fail "the first one was not made: $(cat "$TMP/rpmem.log")"
state=$(target_state 1 2>"$TMP/err")
[ "$state" != up-to-date ] || lost "a replica that nothing was copied to says that it is whole"
mv "$TMP/away" "$TMP/pools2/set2"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out" "$TMP/rpmem.log")"
[ "$(target_state 1) $(target_state 2)" = "up-to-date up-to-date" ] ||
	fail "filled they are $(target_state 1) $(target_state 2)"
for i in 1 2; do
	tail -c +4097 "$TMP/part0" | cmp - <(tail -c +4097 "$TMP/pools$i/part") >"$TMP/out" ||
		lost "set$i is no copy: $(cat "$TMP/out")"
done
[ "$(walk)" = "$filled" ] || lost "not what was filled"
lose_and_sync "$filled"

# One that was not finished, which no program opens while the other one is not there: the sync that would make that is
# refused, and says what helps.
target_marks 1 inconsistent
target_ctl 2 remove --force "$(target_pool 2)" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
pmdk_fails "set2.*; next: pmempool sync" "$FILL" check "$TMP/local.set" test
: >"$TMP/rpmem.log"
pmdk_fails "set1.* not finished: .*; next: .*replctl remove --force $(target_pool 1), then pmempool sync" \
	pmempool sync "$TMP/local.set"
target_ctl 1 remove --force "$(target_pool 1)" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out" "$TMP/rpmem.log")"
[ "$(walk)" = "$filled" ] || lost "not what was filled"
lose_and_sync "$filled"
