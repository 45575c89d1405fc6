# SPDX-License-Identifier: BSD-3-Clause
# Losing the target does not end the program; the replica catches up at the next open, also by a read-only user in between.
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set rem.set "16M rem.part"
local_set rem.set
make_pool
fill 20 >/dev/null


# stream_lost CONFIG: the whole of the daemon goes, by SIGKILL, while the program, $pid, writes.
stream_lost() {
	rm -f "$TMP/stream"
	REPL_CONFIG=$1 LD_LIBRARY_PATH=$BUILD \
		"$FILL" stream "$TMP/local.set" test 10000 >"$TMP/stream" 2>"$TMP/err" </dev/null &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 10 test -s "$TMP/stream" || fail "stream: $(cat "$TMP/err")"
	# It might be through before that.
	kill -STOP "$pid"
	for child in $(pgrep -P "$SERVE_PID"); do
		for grandchild in $(pgrep -P "$child"); do
			kill -KILL "$grandchild"
		done
		kill -KILL "$child"
	done
	kill -CONT "$pid"
}

stream_lost "$TMP/repl.conf"
wait "$pid" || fail "the program ended with $?: $(cat "$TMP/err")"
[ ! -s "$TMP/err" ] || fail "it says: $(cat "$TMP/err")"
grep -q "warning: .*rem.set: lost, [1-9][0-9]* drains went without it: ." "$TMP/rpmem.log" ||
	fail "no word of the loss: $(cat "$TMP/rpmem.log")"
ctl info "$T/rem.set" | grep -q "^state *unknown" || fail "state: $(ctl info "$T/rem.set")"

# Somebody who only looks does not make it whole in name.
pmdk pmempool info "$TMP/local.set" >"$TMP/out" 2>&1 || fail "info: $(cat "$TMP/out")"
ctl info "$T/rem.set" | grep -q "^state *unknown" || fail "state: $(ctl info "$T/rem.set")"
filled=$(fill 5) || exit 1
ctl info "$T/rem.set" | grep -q "^state *up-to-date" || fail "state: $(ctl info "$T/rem.set")"
lose_and_sync "$filled"

# Nobody waits for a replica that does not come back: libpmemobj ends the program as with on-loss = fail, by SIGABRT, or by
# SIGSEGV amid what it does before that.
(cat "$TMP/repl.conf"; echo "on-loss = block"; echo "block-timeout = 600000") >"$TMP/block.conf"
stream_lost "$TMP/block.conf"
wait_for 40 gone "$pid" || fail "it waits"
wait "$pid"
status=$?
[ $status -eq 134 ] || [ $status -eq 139 ] || fail "ended with $status: $(cat "$TMP/err")"

# Without the target nothing can be had, and that is said.
stop "$SERVE_PID"
cp "$TMP/part0" "$TMP/saved"
rm "$TMP/part0"
pmdk_fails "error: open: .*rem.set: .*(refused|connect)" pmempool sync "$TMP/local.set"
cp "$TMP/saved" "$TMP/part0"
pmdk_fails "rem.set" "$FILL" check "$TMP/local.set" test
