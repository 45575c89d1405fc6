#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that has cleared its environment and changed its directory is replicated by what replctl run was told, be it by relative paths.
. "$(dirname "$0")/run_lib.sh"
start_target
ODD=$BUILD/tests/integration/pmem_odd
cd "$TMP" || exit 1
printf '[repl]\nidentity = key\nknown-hosts = known_hosts\non-loss = fail\n' >repl.conf
printf '[repl]\non-loss = fail\n' >bare.conf

# leaves POOL ARG...: replctl run with these, and REPL_CONFIG.
leaves() {
	name=$1
	shift
	timeout -k 5 40 "$REPLCTL" "$@" --replica "$T/$name" --pool "$name" -- "$ODD" leaves "$TMP/$name" \
		>out 2>&1 || fail "$name ends with $?: $(cat out)"
	[ ! -s out ] || fail "$name says: $(cat out)"
	wait_for 10 pool_idle "$name" || fail "$name is still open"
	ctl verify "$name" "$T/$name" >verify.log 2>&1 || lost "$name: $(cat verify.log)"
}

REPL_CONFIG=repl.conf leaves named run
leaves option --config repl.conf run
REPL_CONFIG=bare.conf leaves keys --identity key --known-hosts known_hosts run
# What SSH expands is SSH's to find.
"$REPLCTL" --known-hosts='~/no such' run --replica h/p --pool p -- true >out 2>&1 || fail "known-hosts: $(cat out)"
REPL_CONFIG=bare.conf leaves set run --set identity=key --set known-hosts=known_hosts

# The policy goes with it: no target is there.
REPL_CONFIG=repl.conf timeout -k 5 40 "$REPLCTL" run --replica "nobody@127.0.0.1:$(free_port)/none" --pool none -- \
	"$ODD" leaves "$TMP/none" >out 2>&1 && fail "it goes on without a replica: $(cat out)"
grep -q "NOT REPLICATED" out || fail "it says: $(cat out)"
