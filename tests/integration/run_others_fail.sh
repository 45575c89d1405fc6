#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Who closes a pool to which another program has written opens it once more for that. If that fails, or it is killed
# meanwhile, there is still a mark for the other one, which sees to it when it ends; and so it is with replctl sync.
. "$(dirname "$0")/run_lib.sh"
start_target
ODD=$BUILD/tests/integration/pmem_odd

# program MODE: $PID
program() {
	(ON_LOSS=degrade run "$pool" "$name" timeout -k 5 40 "$ODD" "$1" "$pool") >"$TMP/$name.$1.out" 2>&1 &
	PID=$!
	PIDS="$PIDS $PID"
}

# begin POOL: $first has it open, $second writes to it.
begin() {
	name=$1
	pool=$TMP/$1
	program holds
	first=$PID
	wait_for 10 grep -q holds "$TMP/$name.holds.out" || fail "the first one: $(cat "$TMP/$name.holds.out")"
	program later
	second=$PID
	wait_for 10 grep -q added "$TMP/$name.later.out" || fail "the second one: $(cat "$TMP/$name.later.out")"
	[ -e "$pool.repl-missed" ] || fail "no mark"
}

marked() {
	[ -e "$pool.repl-missed" ] || [ -e "$pool.repl-taken" ]
}

# The second one ends, and the replica has what it has written.
end() {
	: >"$pool.later"
	wait "$second" || fail "$name: the second one ends with $?: $(cat "$TMP/$name.later.out")"
	wait_for 10 pool_idle "$name" || fail "$name is still open"
	ctl info "$T/$name" | grep -q '^state *up-to-date' || fail "$(ctl info "$T/$name")"
	cmp "$pool" "$TMP/serve/pools/$name" >&2 || lost "$name: up to date, and it differs"
	! marked || fail "$name: the mark stays"
}

# It is not let in any more when it has closed the pool.
begin refused
: >"$TMP/serve/authorized_keys"
: >"$pool.enough"
wait "$first" || fail "the first one ends with $?: $(cat "$TMP/$name.holds.out")"
grep -q "what another program has made durable is NOT REPLICATED" "$TMP/$name.holds.out" || fail "it says: $(cat "$TMP/$name.holds.out")"
marked || fail "refused: no mark"
cat "$TMP/authorized_keys" >"$TMP/serve/authorized_keys"
end

# It is killed where it waits for the target to let it in. That is stopped, whose session goes on.
begin killed
signalled STOP "$SERVE_PID"
: >"$pool.enough"
taken() {
	[ ! -e "$pool.repl-missed" ]
}
wait_for 10 taken || fail "it does not come to the mark: $(cat "$TMP/$name.holds.out")"
child=$(children "$first" | head -n 1)
signalled KILL "${child:-$first}"
wait "$first"
signalled CONT "$SERVE_PID"
end

# A sync that does not come to its end leaves a mark, one that does none.
begin sync
: >"$pool.enough"
signalled KILL "$(children "$first" | head -n 1)" "$(children "$second" | head -n 1)"
wait "$first" "$second"
wait_for 10 pool_idle sync || fail "sync is still open"
: >"$TMP/serve/authorized_keys"
ctl sync "$pool" "$T/sync" >"$TMP/out" 2>&1 && fail "it syncs without a key"
marked || fail "sync: no mark"
cat "$TMP/authorized_keys" >"$TMP/serve/authorized_keys"
ctl sync "$pool" "$T/sync" >"$TMP/out" 2>&1 || fail "the next sync: $(cat "$TMP/out")"
! marked || fail "sync: the mark stays"
