#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A pool of libpmemobj's survives sync, loss and restore: pmempool and its own program find it whole.
. "$(dirname "$0")/lib.sh"

LAYOUT=roundtrip
REPLCTL=${REPLCTL:-$BUILD/replctl}
PMEMOBJ_FILL=${PMEMOBJ_FILL:-$BUILD/tests/integration/pmemobj_fill}
command -v pmempool >/dev/null || { echo "skipped: no pmempool (package pmdk-tools)"; exit 77; }

ctl() {
	timeout 60 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" "$@"
}

fill() {
	timeout 60 "$PMEMOBJ_FILL" fill "$pool" "$LAYOUT" "$1" || fail "filling the pool"
}

# expect_whole WHAT: the pool holds what was put in, says PMDK and says the program.
expect_whole() {
	timeout 60 pmempool check -v "$pool" >"$TMP/check.log" 2>&1 || lost "$1: pmempool check: $(cat "$TMP/check.log")"
	found=$(timeout 60 "$PMEMOBJ_FILL" check "$pool" "$LAYOUT") || lost "$1: damaged"
	[ "$found" = "$filled" ] || lost "$1: '$found' in place of '$filled'"
}

lose_and_restore() {
	rm -f "$pool" "$pool.repl"
	ctl restore "$target" "$pool" >"$TMP/restore.log" 2>&1 || fail "replctl restore: $(cat "$TMP/restore.log")"
	ctl verify "$pool" "$target" >"$TMP/verify.log" 2>&1 || lost "replctl verify: $(cat "$TMP/verify.log")"
}

make_keys
start_serve
pool=$TMP/objects.pool
target=$SERVE_USER@127.0.0.1:$SERVE_PORT/objects.pool

pmempool create obj --layout="$LAYOUT" --size=33333333 "$pool" || fail "pmempool create"
fill 3000 >"$TMP/filled"
ctl sync "$pool" "$target" >"$TMP/sync.log" 2>&1 || fail "replctl sync: $(cat "$TMP/sync.log")"
filled=$(cat "$TMP/filled")
lose_and_restore
expect_whole "after the first restore"

# The restored pool is one to go on with: more objects, and what differs is moved.
filled=$(fill 500)
[ "${filled%% *}" = 3500 ] || lost "$filled in place of 3500"
ctl sync "$pool" "$target" >"$TMP/sync.log" 2>&1 || fail "replctl sync of what was added: $(cat "$TMP/sync.log")"
lose_and_restore
expect_whole "after the second restore"
