# SPDX-License-Identifier: BSD-3-Clause
# A disk on this side that takes longer than the target bears silence, to copy a file that is to be replaced or to record
# what was synced, ends neither restore nor sync.
. "$(dirname "$0")/lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
P=$BUILD/tests/integration
tool=$REPLCTL
# Of a record there are two copies.
echo 2000 >"$TMP/slow"

# slow WRAPPER VARIABLE=VALUE: the disk of replctl.
slow() {
	printf '#!/bin/sh\n%s LD_PRELOAD=%s exec "%s" "$@"\n' "$2" "$P/$1.so" "$tool" >"$TMP/replctl"
	chmod 755 "$TMP/replctl"
	REPLCTL=$TMP/replctl
}

start_target "heartbeat = 200" "heartbeat-timeout = 3000"
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >file
ctl sync file "$T/p" >/dev/null 2>err || fail "sync: $(cat err)"
change file 5000
slow slow_space SLOW_COPY=4500
ctl restore --json --force "$T/p" file >out 2>err || fail "restore: $(cat err)"
cmp -s file serve/pools/p || lost "it is not restored"
# Else it was not copied at all, and so not slowly.
[ "$(member moved <out)" -lt 1048576 ] || fail "all of it came from the target: $(cat out)"

change file 5000
slow slow_sync "SLOW_SYNC=$TMP/slow"
ctl sync file "$T/p" >out 2>err || fail "sync: $(cat err)"
cmp -s file serve/pools/p || lost "it is not synced"
