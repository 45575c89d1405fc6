# SPDX-License-Identifier: BSD-3-Clause
# Of two replicas the one that the program has gone on without gives nothing to pmempool sync, which names the other.
. "$(dirname "$0")/compat_lib.sh"
two_targets

make_pool
stream_loses 1 2
[ "$(target_state 1) $(target_state 2)" = "unknown unknown" ] || fail "they are $(target_state 1) $(target_state 2)"
rm "$TMP/part0"

pmdk_fails "set1.* behind .*set2.*replctl remove --force" pmempool sync "$TMP/local.set"
[ ! -e "$TMP/part0" ] || fail "a refused sync has made the local part"

# Nor while the other one can't be reached, which may have more.
commands=$RPMEM_CMD
RPMEM_CMD="${commands%%|*}|false"
pmdk_fails "set1.*set2.* can't be opened" pmempool sync "$TMP/local.set"
[ ! -e "$TMP/part0" ] || fail "a refused sync has made the local part"
RPMEM_CMD=$commands
[ "$(target_state 1) $(target_state 2)" = "unknown unknown" ] || fail "they are $(target_state 1) $(target_state 2)"

# Without it the other one has all, and it is made anew.
target_ctl 1 remove --force "$(target_pool 1)" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
has_told "$told"
