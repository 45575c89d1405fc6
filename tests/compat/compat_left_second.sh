# SPDX-License-Identifier: BSD-3-Clause
# The first of two replicas gives the pool back when the second was lost; a lost one is made equal by the next program.
. "$(dirname "$0")/compat_lib.sh"
two_targets
# What is for one handle hinders none, nor does what it is told of its pool.
printf 'status-socket = %s\nmetrics-file = %s\npool-file = %s\n' "$TMP/socket" "$TMP/metrics" "$TMP/own" >>"$TMP/repl.conf"
ln -s "$TMP/known_hosts" "$TMP/own" && touch "$TMP/own.repl" || fail "no link"

make_pool
stream_loses 2 1
rm "$TMP/part0"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
has_told "$told"

# Lost, and made equal by the next program: then both can give the pool back.
stream_loses 1 2
filled=$(fill 20) || exit 1
[ "$(target_state 1) $(target_state 2)" = "up-to-date up-to-date" ] || fail "they are $(target_state 1) $(target_state 2)"
lose_and_sync "$filled"
