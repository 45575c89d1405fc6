# SPDX-License-Identifier: BSD-3-Clause
# What a target tells of its sessions lies on the disk of its pools: that disk stalls for longer than heartbeat-timeout,
# and no replica is lost by that.
. "$(dirname "$0")/api_lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
SLOW=$BUILD/tests/integration/slow_rename.so
[ -e "$SLOW" ] || fail "no $SLOW"
mkdir "$TMP/slow"
printf '#!/bin/sh\nLD_PRELOAD=%s SLOW_RENAME=%s exec "%s" "$@"\n' "$SLOW" "$TMP/slow/ms" "$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld" "$TMP/slow"
REPLD=$TMP/repld
make_keys
start_serve
start_api
configure "$(pool a)"
stay_lost
ok set heartbeat-timeout 2000
ok map "$TMP/p" $MIB
ok open 1

# told COUNT: of that many updates.
told() {
	grep -aqs "\"commits\":$1," "$TMP/serve/pools/.repld/"*.json
}
told_or_lost() {
	told 2 || degraded 0
}

# What the opening has to tell does not come between.
ok persist 0 0 64
wait_for 20 told 1 || fail "nothing is told"
printf '%d' 3500 >"$TMP/slow/ms"
# And no other update, whose acknowledgement would be a sign of life.
ok persist 0 0 64
wait_for 20 told_or_lost || fail "nothing is told"
rm "$TMP/slow/ms"
established 0 || fail "it is lost: $TEXT"
ok compare 0
same
ok close
stop_api
