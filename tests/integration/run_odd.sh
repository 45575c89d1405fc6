#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Whatever a program does to its mappings, its descriptors and its threads, the replica has what was persisted.
. "$(dirname "$0")/run_lib.sh"
ODD=$BUILD/tests/integration/pmem_odd
start_target

odd() {
	(run "$TMP/$1" "$1" timeout -k 5 40 "$ODD" "$1" "$TMP/$1") >"$TMP/out" 2>&1 ||
		fail "$1 ends with $?: $(cat "$TMP/out")"
	[ "$(cat "$TMP/out")" = "${2-}" ] || [[ ${2-} && $(cat "$TMP/out") =~ $2 ]] ||
		fail "$1 says: $(cat "$TMP/out")"
	wait_for 10 pool_idle "$1" || fail "$1 is still open"
	ctl verify "$TMP/$1" "$T/$1" >"$TMP/verify.log" 2>&1 ||
		fail "$1: $(cat "$TMP/verify.log" "$TMP/out")"
	tr -d '\0' <"$TMP/serve/pools/$1" | grep -q . || fail "$1 holds nothing"
}

for mode in ${MODES-grow part protect fixed daemon nodrain forks cancel}; do
	odd "$mode"
done
odd recreate 'recreate is another file'

# What there is to tell does not go into the pool.
free=$(free_port)
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --pool "$TMP/stderr" \
	--replica "nobody@127.0.0.1:$free/stderr" -- "$ODD" stderr "$TMP/stderr" >"$TMP/out" 2>&1 ||
	fail "stderr: $(cat "$TMP/out")"
! grep -q "librepl" "$TMP/stderr" || fail "a text stands in the pool"
