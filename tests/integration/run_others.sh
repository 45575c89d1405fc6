#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two programs that know nothing of each other write to one pool, replicated by each: who comes second is told that it
# is not, and the replica has what that has made durable when the first one has closed the pool, or is not up to date.
. "$(dirname "$0")/run_lib.sh"
start_target
ODD=$BUILD/tests/integration/pmem_odd

# begin POOL [FILE]: the first one has it open.
begin() {
	name=$1
	pool=${2:-$TMP/$1}
	# What the one before has said is no sign of this one.
	: >"$TMP/first"
	(run "$pool" "$name" timeout -k 5 40 "$ODD" holds "$pool") >"$TMP/first" 2>&1 &
	first=$!
	wait_for 10 grep -q holds "$TMP/first" || fail "the first one: $(cat "$TMP/first")"
}
end() {
	: >"$pool.enough"
	wait $first || fail "the first one ends with $?: $(cat "$TMP/first")"
	[ "$(cat "$TMP/first")" = holds ] || fail "the first one says: $(cat "$TMP/first")"
	is_whole
}
# is_whole: nobody has it open, and the replica is rightly up to date.
is_whole() {
	ctl info "$T/$name" | grep -q '^state *up-to-date' || fail "$(ctl info "$T/$name")"
	cmp "$pool" "$TMP/serve/pools/$name" >&2 || lost "up to date, and it differs"
	[ ! -e "$pool.repl-missed" ] && [ ! -e "$pool.repl-taken" ] || fail "the mark stays"
}

# ended STATUS DUE: the second one, which kills itself when it has added what it adds, or which SIGABRT ends before.
KILLS_ITSELF=137
ABORTED=134
ended() {
	[ "$1" -eq "$2" ] || fail "the second one ends with $1, not $2: $(cat "$TMP/out")"
}

mkdir "$TMP/far"
for policy in degrade fail; do
	marks=$TMP/$policy
	due=$KILLS_ITSELF
	# The mark is beside the file, where others look for it, whatever name it is used by.
	if [ $policy = fail ]; then
		marks=$TMP/far/file
		due=$ABORTED
		ln -s far/file "$TMP/fail"
	fi
	begin $policy
	(ON_LOSS=$policy run "$pool" "$policy" timeout -k 5 40 "$ODD" adds "$pool") >"$TMP/out" 2>&1
	ended $? $due
	grep -q "NOT REPLICATED: .*another program" "$TMP/out" || fail "the second one says: $(cat "$TMP/out")"
	[ -e "$marks.repl-missed" ] || fail "no mark"
	end
	[ ! -e "$marks.repl-missed" ] && [ ! -e "$marks.repl-taken" ] || fail "the mark stays"
done

# A link by which one of the two has mapped it leads to another file by then: the mark is beside the file that is mapped.
truncate -s 1M "$TMP/far/other"
begin second "$TMP/far/second"
ln -s far/second "$TMP/link"
(ON_LOSS=degrade run "$TMP/link" second timeout -k 5 40 "$ODD" meets "$TMP/link") >"$TMP/out" 2>&1 &
second=$!
wait_for 10 grep -q maps "$TMP/out" || fail "the second one: $(cat "$TMP/out")"
ln -sfn far/other "$TMP/link"
: >"$TMP/link.go"
wait $second
ended $? $KILLS_ITSELF
grep -q "NOT REPLICATED: .*another program" "$TMP/out" || fail "the second one says: $(cat "$TMP/out")"
end
ln -s far/first "$TMP/first.link"
begin first "$TMP/first.link"
ln -sfn far/other "$TMP/first.link"
(ON_LOSS=degrade run "$TMP/far/first" first timeout -k 5 40 "$ODD" adds "$TMP/far/first") >"$TMP/out" 2>&1
ended $? $KILLS_ITSELF
grep -q "NOT REPLICATED: .*another program" "$TMP/out" || fail "the second one says: $(cat "$TMP/out")"
: >"$pool.enough"
pool=$TMP/far/first
end
[ ! -e "$TMP/far/other.repl-missed" ] && [ ! -e "$TMP/far/other.repl" ] || fail "the other file is taken for it"

# Its directory gets another name, and the link by which one has mapped it leads there.
mkdir "$TMP/v1"
ln -s v1 "$TMP/current"
begin moved "$TMP/current/moved"
mv "$TMP/v1" "$TMP/v2"
ln -sfn v2 "$TMP/current"
pool=$TMP/v2/moved
(ON_LOSS=degrade run "$pool" moved timeout -k 5 40 "$ODD" adds "$pool") >"$TMP/out" 2>&1
ended $? $KILLS_ITSELF
grep -q "NOT REPLICATED: .*another program" "$TMP/out" || fail "the second one says: $(cat "$TMP/out")"
[ -e "$pool.repl-missed" ] || fail "no mark"
end
begin set "$TMP/current/set"
(ON_LOSS=degrade run "$TMP/current/set" set timeout -k 5 40 "$ODD" meets "$TMP/current/set") >"$TMP/out" 2>&1 &
second=$!
wait_for 10 grep -q maps "$TMP/out" || fail "the second one: $(cat "$TMP/out")"
mv "$TMP/v2" "$TMP/v3"
ln -sfn v3 "$TMP/current"
pool=$TMP/v3/set
: >"$pool.go"
wait $second
ended $? $KILLS_ITSELF
grep -q "NOT REPLICATED: .*another program" "$TMP/out" || fail "the second one says: $(cat "$TMP/out")"
[ -e "$pool.repl-missed" ] || fail "no mark"
end

# Who holds it is no program of replctl run, and looks at no mark: the other one does, when it ends.
name=held
pool=$TMP/held
: >"$TMP/first"
(run "$pool" held timeout -k 5 40 "$ODD" holds "$pool") >"$TMP/first" 2>&1 &
first=$!
wait_for 10 grep -q holds "$TMP/first" && : >"$pool.enough" && wait $first || fail "held: $(cat "$TMP/first")"
rm "$pool.enough"
tr '\0' x <"$pool" | dd of="$pool" conv=notrunc status=none
exec 9<"$pool.repl"
flock -x 9 || fail "flock"
: >"$TMP/first"
(ON_LOSS=degrade run "$pool" held timeout -k 5 40 "$ODD" holds "$pool") >"$TMP/first" 2>&1 9<&- &
first=$!
wait_for 10 grep -q holds "$TMP/first" || fail "held: $(cat "$TMP/first")"
grep -q "NOT REPLICATED: .*another program" "$TMP/first" || fail "it says: $(cat "$TMP/first")"
exec 9<&-
: >"$pool.enough"
wait $first || fail "it ends with $?: $(cat "$TMP/first")"
is_whole

# Who reads the replica, as a restore does, is no such program: one that may goes on without it, and leaves no mark.
rm "$pool.enough"
hold held stable
(ON_LOSS=degrade run "$pool" held timeout -k 5 40 "$ODD" adds "$pool") >"$TMP/out" 2>&1
ended $? $KILLS_ITSELF
grep -q "REPLICA $T/held LOST: .*reads it" "$TMP/out" || fail "it says: $(cat "$TMP/out")"
! grep -q "NOT REPLICATED" "$TMP/out" || fail "it says: $(cat "$TMP/out")"
stop "$HOLD_PID"
wait_for 20 pool_idle held || fail "held is still open"
[ ! -e "$pool.repl-missed" ] || fail "a mark, and nobody else had it"
ctl sync "$pool" "$T/held" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
is_whole
