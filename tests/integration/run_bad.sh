#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A replica that is of another pool is left alone, a damaged header of either side is no loss, and who has no business
# with a pool gets no connection.
. "$(dirname "$0")/run_lib.sh"
WRITE=$BUILD/tests/integration/pmem_write
start_target

# sessions: how many there were.
sessions() {
	grep -c "session of .* begins" "$TMP/serve.log"
}

# not_replicated POOL FILE PATTERN COMMAND...: the program does its work, and it is said that and why it has no replica,
# which stays as it was.
not_replicated() {
	local name=$1 file=$2 pattern=$3 before

	shift 3
	before=$(sha256sum <"$TMP/serve/pools/$name")
	(ON_LOSS=degrade run "$file" "$name" "$@") >"$TMP/out" 2>&1 || fail "$*: $(cat "$TMP/out")"
	grep -Eq "NOT REPLICATED: .*($pattern)" "$TMP/out" || fail "no '$pattern' in: $(cat "$TMP/out")"
	[ "$(sha256sum <"$TMP/serve/pools/$name")" = "$before" ] || lost "the replica was changed"
	status=0
	(run "$file" "$name" "$@") >"$TMP/out" 2>&1 || status=$?
	[ $status -eq 134 ] || fail "with on-loss = fail it ends with $status: $(cat "$TMP/out")"
	[ "$(sha256sum <"$TMP/serve/pools/$name")" = "$before" ] || lost "the replica was changed"
}

# Another pool that was never replicated, one of another size, and one that has a replica of its own.
pmempool create obj --layout=bad --size=16M "$TMP/mine" || fail "pmempool create"
(run "$TMP/mine" mine "$FILL" fill "$TMP/mine" bad 20) >"$TMP/out" 2>&1 || fail "fill: $(cat "$TMP/out")"
pmempool create obj --layout=bad --size=16M "$TMP/other" || fail "pmempool create"
not_replicated mine "$TMP/other" "contents differ; nothing was changed" "$FILL" fill "$TMP/other" bad 1
pmempool create obj --layout=bad --size=20M "$TMP/larger" || fail "pmempool create"
not_replicated mine "$TMP/larger" "has 16777216 bytes, the local range has 20971520" \
	"$FILL" fill "$TMP/larger" bad 1
pmempool create obj --layout=bad --size=16M "$TMP/third" || fail "pmempool create"
(run "$TMP/third" third "$FILL" fill "$TMP/third" bad 3) >"$TMP/out" 2>&1 || fail "fill: $(cat "$TMP/out")"
not_replicated mine "$TMP/third" "no generation in common; nothing was changed" "$FILL" fill "$TMP/third" bad 1
timeout 20 "$FILL" check "$TMP/other" bad >"$TMP/out" || lost "what was not replicated is damaged"

# PMDK's header damaged here: PMDK refuses the file, and what comes back from the replica is whole.
printf damaged | dd of="$TMP/mine" bs=1 seek=20 conv=notrunc 2>"$TMP/dd.log"
! (run "$TMP/mine" mine "$FILL" fill "$TMP/mine" bad 1) >"$TMP/out" 2>&1 || fail "PMDK opens a damaged pool"
grep -q "checksum\|header\|signature\|invalid" "$TMP/out" || fail "PMDK says: $(cat "$TMP/out")"
restore_pool mine "$TMP/mine"
expect_count "$TMP/mine" bad 20

# ... and there: the next one who opens the pool to write makes it whole, nobody believes it meanwhile.
signalled STOP "$SERVE_PID"
printf damaged | dd of="$TMP/serve/pools/mine" bs=1 seek=20 conv=notrunc 2>"$TMP/dd.log"
signalled CONT "$SERVE_PID"
ctl_fails 1 "differ in" verify "$TMP/mine" "$T/mine"
(run "$TMP/mine" mine "$FILL" fill "$TMP/mine" bad 5) >"$TMP/out" 2>&1 || fail "fill: $(cat "$TMP/out")"
restore_pool mine "$TMP/mine"
expect_count "$TMP/mine" bad 25

# Programs of the system can't load a library that was built with sanitizers.
if nm -D "$BUILD/librepl-preload.so" | grep -q "__[at]san"; then
	left_out "programs of the system, with sanitizers"
	exit
fi
# A program without a pool, and one that the system protects from what its caller names, as it does those of another
# user's rights: no connection, no word.
before=$(sessions)
(run "$TMP/mine" mine sh -c 'cat "$1" | wc -c' sh "$TMP/mine") >"$TMP/out" 2>&1 || fail "cat: $(cat "$TMP/out")"
[ "$(cat "$TMP/out")" = 16777216 ] || fail "cat says: $(cat "$TMP/out")"
if [ "$(id -u)" = 0 ]; then
	# Written to by its child, the file is its own.
	cp "$WRITE" "$TMP/setuid"
	chmod 4755 "$TMP/setuid"
	mkdir -m 0777 "$TMP/place"
	(run "$TMP/place/file" protected setpriv --reuid=nobody --regid=nogroup --clear-groups \
		"$TMP/setuid" pmem "$TMP/place/file") >"$TMP/out" 2>&1 || fail "setuid: $(cat "$TMP/out")"
	tr -d '\0' <"$TMP/place/file" | grep -q . || fail "it has written nothing"
	[ "$(stat -c %u "$TMP/place/file")" = 0 ] || fail "it had no other rights"
	! grep -q preload "$TMP/out" || fail "a library is in it: $(cat "$TMP/out")"
else
	left_out "a program of another user's rights needs root"
fi
[ "$(sessions)" = "$before" ] || fail "somebody connected: $(tail -n 5 "$TMP/serve.log")"
