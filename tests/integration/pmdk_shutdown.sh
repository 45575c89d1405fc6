#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A pool whose program was killed on a device of its own opens where it is restored to, and says so.
. "$(dirname "$0")/lib.sh"

REPLCTL=${REPLCTL:-$BUILD/replctl}
FILL=$BUILD/tests/integration/pmemobj_fill
command -v pmempool >/dev/null || { echo "skipped: no pmempool (package pmdk-tools)"; exit 77; }

ctl() {
	timeout 20 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" "$@"
}

make_keys
start_serve
pool=$TMP/objects.pool
target=$SERVE_USER@127.0.0.1:$SERVE_PORT/objects.pool
pmempool create obj --layout=bound --size=32M "$pool" || fail "pmempool create"
filled=$("$FILL" fill "$pool" bound 300) || fail "filling"

# Closed in order: nothing to change, and file and replica stay equal.
ctl sync "$pool" "$target" >"$TMP/log" 2>&1 || fail "sync: $(cat "$TMP/log")"
ctl restore "$target" "$TMP/clean.pool" >"$TMP/log" 2>&1 || fail "restore: $(cat "$TMP/log")"
! grep -q "shutdown state" "$TMP/log" || fail "a clean state was reset"
cmp "$pool" "$TMP/clean.pool" || lost "the clean copy differs"

"$BUILD/tests/integration/pmdk_bind" "$pool" || fail "pmdk_bind"
! "$FILL" check "$pool" bound >"$TMP/log" 2>&1 || lost "PMDK opens it as it is: nothing to show"
ctl sync "$pool" "$target" >"$TMP/log" 2>&1 || fail "sync: $(cat "$TMP/log")"
ctl info "$target" >"$TMP/info" 2>&1 || fail "info: $(cat "$TMP/info")"
grep -Eq '^pmdk pool *obj, version 6, layout bound$' "$TMP/info" || fail "info: $(cat "$TMP/info")"
grep -Eq '^last shutdown *open or killed, bound to its device$' "$TMP/info" ||
	fail "info: $(cat "$TMP/info")"
uuid=$(pmempool info "$pool" | sed -n 's/^Pool set UUID *: //p')
grep -q "^pool set uuid *$uuid\$" "$TMP/info" || fail "not $uuid: $(cat "$TMP/info")"

ctl restore "$target" "$TMP/bound.pool" >"$TMP/log" 2>&1 || fail "restore: $(cat "$TMP/log")"
grep -q "PMDK shutdown state.* is reset" "$TMP/log" || fail "restore says: $(cat "$TMP/log")"
found=$("$FILL" check "$TMP/bound.pool" bound) || lost "PMDK does not open what was restored"
[ "$found" = "$filled" ] || lost "'$found' in place of '$filled'"
pmempool check "$TMP/bound.pool" >"$TMP/log" 2>&1 || lost "pmempool check: $(cat "$TMP/log")"

# It differs from the replica now and is ahead of it: the next sync takes it.
ctl sync "$TMP/bound.pool" "$target" >"$TMP/log" 2>&1 || fail "sync back: $(cat "$TMP/log")"
ctl verify "$TMP/bound.pool" "$target" >"$TMP/log" 2>&1 || lost "verify: $(cat "$TMP/log")"
