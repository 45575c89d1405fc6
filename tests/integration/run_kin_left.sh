#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Who had the pool open is killed before it has served what others wait for, or is told that a replica is lost: nobody
# is told that bytes are durable which the replica lacks. And processes end though signal handlers write meanwhile, and
# children of an opening stand in the way of none.
. "$(dirname "$0")/run_lib.sh"
start_target

odd lingers
# In a child that exits the leak sanitizer looks for threads that are its parent's.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
odd alarmed

# A child that was made amid an opening has none of that: its target answers when the child is there.
(run "$TMP/amid_kin" amid_kin timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" amid_kin "$TMP/amid_kin") \
	>"$TMP/out" 2>&1 &
pid=$!
PIDS="$PIDS $pid"
wait_for 20 grep -q closed "$TMP/out" || fail "it does not begin: $(cat "$TMP/out")"
signalled STOP "$SERVE_PID" || fail "the target does not stop"
touch "$TMP/amid_kin.enough"
wait_for 20 grep -q forked "$TMP/out" || fail "there is no child: $(cat "$TMP/out")"
signalled CONT "$SERVE_PID"
wait "$pid" || fail "amid_kin ends with $?: $(cat "$TMP/out")"
wait_for 10 pool_idle amid_kin || fail "amid_kin is still open"
ctl verify "$TMP/amid_kin" "$T/amid_kin" >"$TMP/verify.log" 2>&1 || lost "amid_kin: $(cat "$TMP/verify.log" "$TMP/out")"

# A child that returns from a handler to what it has interrupted, as a drain, takes nothing of its parent's answers, nor
# is it ended or kept waiting for replicas that only it lacks, and it replicates what it makes durable later.
serving() {
	for login in $(children "$SERVE_PID"); do
		echo "$login"
		children "$login"
	done
}
none_serves() {
	[ -z "$(serving)" ]
}

# amid WHAT ON-LOSS
amid() {
	local name=$1_$2 pid parent sessions out=$TMP/$1_$2.out

	(ON_LOSS=$2 run "$TMP/$name" "$name" timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" "$1_kin" "$TMP/$name") \
		>"$out" 2>&1 &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 20 grep -q pid "$out" || fail "it does not begin: $(cat "$out")"
	parent=$(sed -n 's/^pid //p' "$out")
	sessions=$(serving)
	if [ "$1" = open ]; then
		wait_for 10 none_serves || fail "sessions stay"
		sessions=$SERVE_PID
	fi
	signalled STOP $sessions || fail "they do not stop"
	touch "$TMP/$name.enough"
	wait_for 20 grep -q forked "$out" || fail "there is no child: $(cat "$out")"
	# The others' child waits for its parent, which opens the pool, or has it open.
	[ "$1" != drain ] && [ "$1" != wait ] || signalled STOP "$parent" || fail "the parent does not stop"
	signalled CONT $sessions
	wait_for 20 grep -q returned "$out" || fail "the child does not return: $(cat "$out")"
	signalled CONT "$parent"
	wait "$pid" || fail "$name ends with $?: $(cat "$out")"
	grep -q "lost\|LOST\|NOT REPLICATED\|drain:\|closing:" "$out" && fail "$name says: $(cat "$out")"
	wait_for 10 pool_idle "$name" || fail "$name is still open"
	ctl verify "$TMP/$name" "$T/$name" >"$TMP/verify.log" 2>&1 || lost "$name: $(cat "$TMP/verify.log" "$out")"
}
for on_loss in degrade fail block; do
	amid drain "$on_loss"
done
LANES=1 amid wait degrade
for what in open growth; do
	amid "$what" degrade
	amid "$what" fail
done

# number FILE: its first 8 bytes.
number() {
	od -An -t u8 -N 8 "$1" | tr -d ' '
}
counted() {
	[ "$(number "$TMP/counts.count")" -gt "$1" ]
}
(run "$TMP/counts" counts setsid -w "$BUILD/tests/integration/pmem_odd" counts "$TMP/counts") >"$TMP/out" 2>&1 &
wait_for 10 counted 100 || fail "it does not count: $(cat "$TMP/out")"
sessions=$(children "$SERVE_PID")
signalled KILL "$SERVE_PID"
for session in $sessions; do
	kill -KILL $(children "$session") "$session" 2>/dev/null
done
wait
replica=$(number "$TMP/serve/pools/counts")
[ -n "$replica" ] || fail "there is no replica"
! counted "$replica" || lost "it was told of $(number "$TMP/counts.count"), the replica has $replica"
