# SPDX-License-Identifier: BSD-3-Clause
# What is told of a lost replica when the program ends is what becomes of it: a single one that was promoted, written to and demoted
# is overwritten by the next program, which tells it, too; one that is gone has to be made by pmempool sync before there is a next.
. "$(dirname "$0")/compat_lib.sh"
start_compat
echo "reconnect-max = 500" >>"$TMP/repl.conf"
target_set rem.set "16M $POOLS/p"
local_set rem.set
make_pool
fill 20 >/dev/null

# is_looked_at: the program has had a session since then, and knows what is there.
is_looked_at() {
	tail -n "+$mark" "$TMP/serve.log" | grep -q "pid $pid: \(session ends: bye\|pool.open refused: not-found\)"
}

# lost_while COMMAND...: that happens before the program sees that its session was ended.
lost_while() {
	kill -STOP "$pid"
	"$@"
	mark=$(($(wc -l <"$TMP/serve.log") + 1))
	kill -CONT "$pid"
	wait_for 20 grep -q "REPLICA LOST" "$TMP/err" || fail "no word of the loss: $(cat "$TMP/err")"
}

promoted_for_a_while() {
	ctl promote --force "$T/rem.set" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
	here "$FILL" fill "$POOLS/rem.set" test 10
	replica
}

paced_start
lost_while promoted_for_a_while
wait_for 20 is_looked_at || fail "it is not looked at: $(cat "$TMP/serve.log")"
paced_end
grep -q "closed without it.*have diverged.*the next program that opens the pool overwrites.*replctl promote" "$TMP/err" ||
	lost "no word of what comes: $(cat "$TMP/err")"
! grep -q "replctl verify\|replctl resolve\|here alone" "$TMP/err" || fail "what is refused, or untrue: $(cat "$TMP/err")"
rm -f "$TMP/rpmem.log"
filled=$(fill 1) || exit 1
grep -q "warning: .*rem.set: .*what it has and the pool lacks is overwritten" "$TMP/rpmem.log" ||
	lost "nothing is told: $(cat "$TMP/rpmem.log")"
lose_and_sync "$filled"
rm -f "$TMP/rpmem.log"
fill 1 >/dev/null
! grep -q "warning" "$TMP/rpmem.log" || fail "a warning of nothing: $(cat "$TMP/rpmem.log")"

# Gone.
gone_for_good() {
	sessions_kill
	wait_for 10 ctl remove --force "$T/rem.set" || fail "remove: $(ctl remove --force "$T/rem.set" 2>&1)"
}
paced_start
lost_while gone_for_good
wait_for 20 is_looked_at || fail "it is not looked at: $(cat "$TMP/serve.log")"
paced_end
grep -q "closed without it.*no program opens the pool before .*pmempool sync" "$TMP/err" || fail "$(cat "$TMP/err")"
! pmdk "$FILL" check "$TMP/local.set" test >"$TMP/out" 2>&1 || fail "it opens the pool"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
filled=$(walk) || exit 1
lose_and_sync "$filled"
