# SPDX-License-Identifier: BSD-3-Clause
# A replica that takes longer to make than pmempool lives is none to restore from.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/compat_lib.sh"
SPACE=$BUILD/tests/integration/slow_space.so
[ -e "$SPACE" ] || fail "no $SPACE"
printf '#!/bin/sh\nLD_PRELOAD=%s SLOW_SPACE=300 exec "%s" "$@"\n' "$SPACE" "$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
start_compat
target_set rem.set "16M rem.part"
printf 'PMEMPOOLSET\n16M %s\n' "$TMP/part0" >"$TMP/alone.set"
local_set rem.set
pmdk pmempool create obj --layout=test "$TMP/alone.set" >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"

being_made() {
	[ -n "$(find "$POOLS" -name '.tmp-*')" ] || gone "$pid"
}

made() {
	ctl info "$T/rem.set" >"$TMP/info" 2>&1
}

REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD pmempool transform "$TMP/alone.set" "$TMP/local.set" \
	>"$TMP/out" 2>&1 </dev/null &
pid=$!
PIDS="$PIDS $pid"
until being_made; do
	:
done
kill -KILL "$pid" || fail "transform: $(cat "$TMP/out")"
wait "$pid" 2>/dev/null
wait_for 10 made || fail "it is not made: $(cat "$TMP/info")"
! grep -q "^state *up-to-date" "$TMP/info" || lost "an empty replica says that it is whole: $(cat "$TMP/info")"
mv "$TMP/part0" "$TMP/saved"
! pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || lost "zeros are taken for the pool"
grep -q "was begun and not finished" "$TMP/rpmem.log" || fail "no reason: $(cat "$TMP/out" "$TMP/rpmem.log")"
mv "$TMP/saved" "$TMP/part0"
ctl remove --force "$T/rem.set" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
pmdk pmempool transform "$TMP/alone.set" "$TMP/local.set" >"$TMP/out" 2>&1 || fail "transform: $(cat "$TMP/out")"
ctl info "$T/rem.set" | grep -q "^state *up-to-date" || fail "filled it is not up to date: $(ctl info "$T/rem.set")"
