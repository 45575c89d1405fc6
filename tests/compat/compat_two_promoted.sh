# SPDX-License-Identifier: BSD-3-Clause
# Of two replicas that people went on from one by one neither is overwritten: the pool does not open with both.
. "$(dirname "$0")/compat_lib.sh"
two_targets

make_pool
filled=$(fill 20) || exit 1
for i in 1 2; do
	for command in promote demote; do
		target_ctl "$i" "$command" "$(target_pool "$i")" >"$TMP/out" 2>&1 || fail "$command $i: $(cat "$TMP/out")"
	done
done
pmdk_fails "set2 .*without each other.*set1.*replctl remove --force" "$FILL" check "$TMP/local.set" test
grep -q "local.set: .*(Operation not permitted)$" "$TMP/out" || fail "another errno: $(cat "$TMP/out")"
mv "$TMP/part0" "$TMP/saved"
pmdk_fails "set1 .*without each other.*set2" pmempool sync "$TMP/local.set"
[ ! -e "$TMP/part0" ] || fail "a refused sync has made the local part"
mv "$TMP/saved" "$TMP/part0"

target_ctl 1 remove --force "$(target_pool 1)" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
found=$(walk) || exit 1
[ "$found" = "$filled" ] || lost "'$found' in place of '$filled'"
