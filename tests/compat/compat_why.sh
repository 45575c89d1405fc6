# SPDX-License-Identifier: BSD-3-Clause
# Of a pool set no next step leads back to where it came from, nor to what is refused of one: by why, newest and librpmem the user
# comes to the program or to pmempool sync.
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set rem.set "8M rem.part" "12M second"
local_set rem.set
make_pool
filled=$(fill 20) || exit 1

# told REASON NEXT: why says so, from the set file on, and nothing that a set is refused.
told() {
	next=$(ctl why "$TMP/local.set" | sed -n 's/^next *replctl //p')
	eval "ctl $next" >"$TMP/out" 2>&1 || fail "'replctl $next': $(cat "$TMP/out")"
	grep -q "^reason *$1:" "$TMP/out" || fail "no '$1': $(cat "$TMP/out")"
	grep "^next" "$TMP/out" | grep -q "$2" || fail "$1, no '$2': $(cat "$TMP/out")"
	# Of one that is not there it is not known that it is a set's.
	! sed 's/; of a pool set.*//' "$TMP/out" | grep "^next" | grep -q "replctl why" || fail "$1, a circle: $(cat "$TMP/out")"
	[ "$1" = pool-missing ] || [ "$1" = damaged ] ||
		! grep "^next" "$TMP/out" | grep -Eq "replctl (why|sync|resume|create|restore|verify|resolve)" ||
		fail "$1, what is refused: $(cat "$TMP/out")"
}

# marked STATE: a session leaves it so.
marked() {
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1]}}'
		echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"rem.set","mode":"write"}}'
		echo "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"pool.mark\",\"params\":{\"state\":\"$1\"}}"
		echo '{"jsonrpc":"2.0","id":4,"method":"pool.close"}'
		echo '{"jsonrpc":"2.0","id":5,"method":"bye"}'
	} | client cat "$T" >"$TMP/answers" 2>&1
	wait_for 10 ended || fail "its session stays"
}

ended() {
	! ctl why "$T/rem.set" | grep -q "^reason *other-writer"
}

# newest_says PATTERN
newest_says() {
	ctl newest "$T/rem.set" >"$TMP/out" 2>&1
	grep -q "next.*$1" "$TMP/out" && ! grep -q "replctl restore" "$TMP/out" || fail "newest: $(cat "$TMP/out")"
}

told none "replctl newest .*rem.set"
newest_says "pmempool sync of its set file"
here_and_gone() {
	ctl info "$T/rem.set" | grep -q "^state *unknown"
}
paced_start
paced_kill
wait_for 15 here_and_gone || fail "$(ctl info "$T/rem.set")"
told writer-gone "start it again.*replctl newest .*pmempool sync"
for state in inconsistent outdated; do
	marked $state
	told $state "start it again.*replctl newest .*pmempool sync"
done
marked inconsistent
newest_says "pmempool"
filled=$(fill 5) || exit 1
ctl promote "$T/rem.set" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
told promoted "replctl demote .*pmempool sync"
ctl demote "$T/rem.set" >"$TMP/out" 2>&1 || fail "demote: $(cat "$TMP/out")"

# says_sync: the program is refused, with the step that helps.
says_sync() {
	! pmdk "$FILL" check "$TMP/local.set" test >"$TMP/out" 2>&1 || fail "it opens the pool"
	tail -n 1 "$TMP/rpmem.log" | grep -q "error: open: .*next: $1" || fail "librpmem: $(tail -n 1 "$TMP/rpmem.log")"
}
mv "$POOLS/second" "$TMP/second"
told damaged "put back.*of a pool set .*pmempool sync of its set file"
says_sync "put back what is missing.*pmempool sync of the set file"
mv "$TMP/second" "$POOLS/second"
ctl remove --force "$T/rem.set" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
told pool-missing "of a pool set .*pmempool sync of its set file"
says_sync "pmempool sync of the set file"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
lose_and_sync "$filled"
