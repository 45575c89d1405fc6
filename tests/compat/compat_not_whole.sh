# SPDX-License-Identifier: BSD-3-Clause
# A replica that has the generation of the others, and not all that was acknowledged, gives nothing to pmempool sync: its resync was
# cut off. Nor is one taken for up to date that a promotion and a demotion have called so: the next program compares it.
. "$(dirname "$0")/compat_lib.sh"
two_targets
make_pool
filled=$(fill 20) || exit 1
[ "$(target_state 1) $(target_state 2)" = "up-to-date up-to-date" ] || fail "they are $(target_state 1) $(target_state 2)"

# As a round of a resync leaves it that was not the last.
generation=$(target_ctl 2 info --json "$(target_pool 2)" | member generation)
target_marks 1 outdated "$generation"
mv "$TMP/part0" "$TMP/saved"
pmdk_fails "set1 .*behind.*set2.*replctl remove --force" pmempool sync "$TMP/local.set"
mv "$TMP/saved" "$TMP/part0"
filled=$(fill 5) || exit 1
[ "$(target_state 1) $(target_state 2)" = "up-to-date up-to-date" ] || fail "they are $(target_state 1) $(target_state 2)"
lose_and_sync "$filled"

# Lost, gone on without, and then taken for a primary for a moment.
target_ctl 1 remove --force "$(target_pool 1)" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
rm "$TMP/part0"
printf 'PMEMPOOLSET\n16M %s\nREPLICA %s set1\n' "$TMP/part0" "$at" >"$TMP/local.set"
make_pool
filled=$(fill 5) || exit 1
is_lost() {
	grep -q "REPLICA LOST" "$TMP/err"
}
paced_start
mv "$TMP/repld1.conf" "$TMP/repld1.away"
target_sessions_kill 1
wait_for 20 is_lost || fail "no word of the loss: $(cat "$TMP/err")"
sleep 0.5
paced_kill
mv "$TMP/repld1.away" "$TMP/repld1.conf"
target_ctl 1 promote "$(target_pool 1)" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
target_ctl 1 demote "$(target_pool 1)" >"$TMP/out" 2>&1 || fail "demote: $(cat "$TMP/out")"
filled=$(fill 1) || exit 1
[ "$(target_state 1)" = up-to-date ] || fail "it is $(target_state 1)"
lose_and_sync "$filled"
