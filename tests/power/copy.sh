# SPDX-License-Identifier: BSD-3-Clause
# A copy of a whole pool that was reported to be there is on the media: after a power cut the
# replica equals the file, be it a first copy, written to the pool, or a later one by the journal.
#
# usage: copy.sh page|cache_line [drop]
#
# With drop no flush of the pool is done: the test passes when that is seen.
. "$(dirname "$0")/on_disk.sh"
. "$(dirname "$0")/../integration/lib.sh"
export REPL_MEDIA_GRANULARITY="$1" REPL_MEDIA_DOMAIN=dmp REPL_MEDIA_DDIO=on
[ "${2-}" != drop ] || export REPL_MEDIA_DROP=1
REPLD=$BUILD/tests/sim/repld-media

cut_power() {
	for pid in $(children "$SERVE_PID") "$SERVE_PID"; do
		kill -KILL "$pid" 2>/dev/null
	done
	wait_for 10 gone "$SERVE_PID" || fail "the daemon does not end"
	"$BUILD/tests/sim/media_cut" "$TMP/serve/pools/p" 2>"$TMP/cut.log" &&
		"$BUILD/tests/sim/media_cut" "$TMP/serve/pools/p.repl" 8192 2>>"$TMP/cut.log" ||
		fail "the cut"
}

# The copy is there, the power fails; whoever opens the pool next brings in what is still to be.
copy_and_cut() {
	ctl sync "$TMP/file" "$T/p" >"$TMP/out" 2>"$TMP/err" || fail "sync: $(cat "$TMP/err")"
	cut_power
	start_serve
	T=$SERVE_USER@127.0.0.1:$SERVE_PORT
	ctl info "$T/p" >"$TMP/out" 2>"$TMP/err" || fail "info: $(cat "$TMP/err")"
	cmp "$TMP/file" "$TMP/serve/pools/p" >"$TMP/cmp" 2>&1
}

head -c 8M /dev/urandom >"$TMP/file"
start_target
copy_and_cut
same=$?
if [ "${2-}" = drop ]; then
	[ "$same" -ne 0 ] || fail "no flush was done, and nothing is lost"
	exit 0
fi
[ "$same" -eq 0 ] || lost "behind a first copy: $(cat "$TMP/cmp")"
head -c 3M /dev/urandom | dd of="$TMP/file" bs=4096 seek=100 conv=notrunc 2>/dev/null
copy_and_cut || lost "behind a later copy: $(cat "$TMP/cmp")"
