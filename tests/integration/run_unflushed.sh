#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that changes its pool and makes nothing of it durable by what is followed is told at its end that it has no
# replica, and how to get one, whatever it is called and however it changes it; who only looks is not.
. "$(dirname "$0")/run_lib.sh"
start_target
ODD=$BUILD/tests/integration/pmem_odd

file="$TMP/it's stored"
name="the (stores)"
(run "$file" "$name" "$ODD" stores "$file") >"$TMP/out" 2>&1 || fail "stores: $(cat "$TMP/out")"
grep -Fq "$file: changed, and nothing " "$TMP/out" && grep -q " NOT REPLICATED; next: replctl sync" "$TMP/out" ||
	fail "it says: $(cat "$TMP/out")"
[ "$(wc -l <"$TMP/out")" -eq 1 ] || fail "more than a line: $(cat "$TMP/out")"
next=$(sed 's/.*next: replctl /ctl /' "$TMP/out")
ctl_fails 3 "not found" info "$T/$name"
(eval "$next") >"$TMP/sync.log" 2>&1 || fail "the next step: $(cat "$TMP/sync.log")"
ctl verify "$file" "$T/$name" >"$TMP/verify.log" 2>&1 || lost "$(cat "$TMP/verify.log")"

(run "$TMP/looks" looks "$ODD" looks "$TMP/looks") >"$TMP/out" 2>&1 || fail "looks: $(cat "$TMP/out")"
[ ! -s "$TMP/out" ] || fail "who looks is told: $(cat "$TMP/out")"

# unfollowed MODE: told once.
unfollowed() {
	file=$TMP/$1
	(run "$file" "$1" "$ODD" "$1" "$file") >"$TMP/out" 2>&1 || fail "$1: $(cat "$TMP/out")"
	grep -q "/$1: changed, and nothing .* NOT REPLICATED; next: replctl sync" "$TMP/out" || fail "$1 says: $(cat "$TMP/out")"
	[ "$(wc -l <"$TMP/out")" -eq 1 ] || fail "$1: more than a line: $(cat "$TMP/out")"
}
unfollowed writes
unfollowed syncs
head -c 1M /dev/zero >"$TMP/reads"
unfollowed reads

# What is written before it is mapped goes with the rest.
odd begins

# Who goes on is told by then.
(run "$TMP/syncson" syncson "$ODD" syncson "$TMP/syncson") >"$TMP/out" 2>&1 &
pid=$!
PIDS="$PIDS $pid"
wait_for 20 grep -q "/syncson: fsync(2) replicates nothing: " "$TMP/out" || fail "it says: $(cat "$TMP/out")"
: >"$TMP/syncson.enough"
wait "$pid" || fail "it ends with $?: $(cat "$TMP/out")"
[ "$(grep -c "replicates nothing" "$TMP/out")" -eq 1 ] || fail "more than once: $(cat "$TMP/out")"

# silent WHAT PROGRAM...: below replctl run of that file it says nothing.
silent() {
	what=$1
	shift
	(run "$TMP/$what" "$what" "$@") >"$TMP/out" 2>&1 || fail "$what ends with $?: $(cat "$TMP/out")"
	[ ! -s "$TMP/out" ] || fail "$what says: $(cat "$TMP/out")"
}

# Who only makes the file, of space or of zeros, has nothing in it.
silent spaced fallocate -l 4M "$TMP/spaced"
silent zeroed dd if=/dev/zero of="$TMP/zeroed" bs=1M count=1 status=none
[ -s "$TMP/spaced" ] && [ -s "$TMP/zeroed" ] || fail "no file: $(ls -l "$TMP")"

# Nor is who holds it told, where the program that it starts replicates it, or another one has it open.
silent held bash -c 'exec 9<>"$1"; flock 9; "$2" page "$1"; exit 0' sh "$TMP/held" "$ODD"
wait_for 10 pool_idle held || fail "held is still open"
ctl verify "$TMP/held" "$T/held" >"$TMP/verify.log" 2>&1 || lost "held: $(cat "$TMP/verify.log")"
# That goes by the record of the pool: as it was before, nobody has replicated what is written now, but who has locked it.
touch -d "1 minute ago" "$TMP/held.repl"
(run "$TMP/held" held bash -c 'exec 9<>"$1"; printf x >&9; exit 0' sh "$TMP/held") >"$TMP/out" 2>&1 || fail "held: $(cat "$TMP/out")"
grep -q "/held: changed, and nothing .* NOT REPLICATED" "$TMP/out" || fail "held says: $(cat "$TMP/out")"
(exec 5<"$TMP/held.repl" && flock -x 5 && exec sleep 600) &
PIDS="$PIDS $!"
locked() {
	! flock -n -s "$TMP/held.repl" true
}
wait_for 20 locked || fail "no lock"
silent held bash -c 'exec 9<>"$1"; printf y >&9; exit 0' sh "$TMP/held"
