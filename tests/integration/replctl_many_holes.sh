#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A pool whose holes take long to look at, be that their number or its size, is compared, synced and restored while the
# target hears that somebody is there.
. "$(dirname "$0")/lib.sh"
start_target "heartbeat = 200" "heartbeat-timeout = 2000"
MIB=1048576

# slow COMMAND POOL ARG...: of each run of data that is looked for the end is found in 10 ms.
slow() {
	LD_PRELOAD=$BUILD/tests/integration/slow_look.so SLOW_LOOK=10 \
		ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 \
		ctl "$@" >"$TMP/out" 2>&1 || fail "$*: $(cat "$TMP/out")"
}

# make POOL SIZE STEP: a page at each step, and a replica.
make() {
	python3 -c 'import os, sys
size, step = int(sys.argv[2]), int(sys.argv[3])
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, size)
for off in range(0, size, step):
    os.pwrite(fd, b"x", off)' "$TMP/$1" "$2" "$3"
	ctl create "$T/$1" --from "$TMP/$1" --sparse >"$TMP/out" 2>&1 || fail "$1: create: $(cat "$TMP/out")"
}

make pages $((32 * MIB)) 8192
slow verify "$TMP/pages" "$T/pages"
slow restore "$T/pages" "$TMP/back"
cmp "$TMP/pages" "$TMP/back" >&2 || lost "it comes back as another"

make segments $((220 * 16 * MIB)) $((16 * MIB))
slow verify "$TMP/segments" "$T/segments"
change "$TMP/segments" $((100 * 16 * MIB))
slow sync "$TMP/segments" "$T/segments"
ctl verify "$TMP/segments" "$T/segments" >"$TMP/out" 2>&1 || lost "$(cat "$TMP/out")"
