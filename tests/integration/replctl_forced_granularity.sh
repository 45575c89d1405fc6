#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A granularity that is forced on programs of PMDK's is none that repld flushes by.
. "$(dirname "$0")/lib.sh"

for forced in BYTE CACHE_LINE; do
	PMEM2_FORCE_GRANULARITY=$forced
	export PMEM2_FORCE_GRANULARITY
	[ -e "$TMP/key" ] || make_keys
	start_serve
	T=$SERVE_USER@127.0.0.1:$SERVE_PORT
	truncate -s 65536 "$TMP/p"
	ctl sync "$TMP/p" "$T/p-$forced" || fail "sync"
	ctl probe "$T/p-$forced" >"$TMP/probe.out" || fail "probe"
	grep -E "store-granularity +page" "$TMP/probe.out" || fail "$forced: $(cat "$TMP/probe.out")"
	! grep -q -i forced "$TMP/probe.out" || fail "$forced: $(cat "$TMP/probe.out")"
	stop "$SERVE_PID"
done
