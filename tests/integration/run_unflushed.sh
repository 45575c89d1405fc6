#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that changes its pool and makes nothing of it durable by what is followed is told at its end that it has no
# replica, and how to get one, whatever it is called; who only looks is not.
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
