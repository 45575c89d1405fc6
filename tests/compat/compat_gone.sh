# SPDX-License-Identifier: BSD-3-Clause
# A replica whose target is gone is told of while the program runs, with a command that can be typed whatever its name is; and
# that it may lack something, when it is copied from.
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set "it's.set" "16M rem.part"
local_set "it's.set"
make_pool
fill 20 >/dev/null

paced_start
kill -STOP "$SERVE_PID"
sessions_kill
wait_for 20 grep -q "^librpmem: .*it's.set: REPLICA LOST: .*next: replctl why " "$TMP/err" ||
	fail "no word of the loss: $(cat "$TMP/err")"
paced_kill
[ "$(grep -c . "$TMP/err")" -eq 1 ] || fail "more than a line: $(cat "$TMP/err")"
kill -CONT "$SERVE_PID"
(eval "$(sed 's/.*next: replctl why /ctl why /' "$TMP/err")") >"$TMP/out" 2>&1 || fail "the next step: $(cat "$TMP/err" "$TMP/out")"
grep -q "^what .*/it's.set$" "$TMP/out" || fail "why of another: $(cat "$TMP/out")"

# What the local part tells, and what it can't.
"$REPLCTL" why "$TMP/part0" >"$TMP/out" 2>&1 </dev/null
! grep -q "nothing was ever replicated" "$TMP/out" || fail "why: $(cat "$TMP/out")"
grep -q "part of a pool set" "$TMP/out" || fail "why: $(cat "$TMP/out")"

rm "$TMP/part0"
unset RPMEM_LOG_FILE RPMEM_LOG_LEVEL
wait_for 15 pmdk pmempool sync "$TMP/local.set" || fail "sync: $(pmdk pmempool sync "$TMP/local.set" 2>&1)"
rm "$TMP/part0"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
[ "$(grep -c "^librpmem: .*it's.set: its last writer ended without closing it" "$TMP/out")" -eq 1 ] ||
	fail "sync says nothing, or more than that: $(cat "$TMP/out")"
found=$(walk) || exit 1
[ "${found%% *}" -ge 20 ] || lost "$found objects, 20 were there before"
