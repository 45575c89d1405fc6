# SPDX-License-Identifier: BSD-3-Clause
# Losing the target does not end the program; the replica catches up at the next open, also by a read-only user in between.
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set rem.set "16M rem.part"
local_set rem.set
make_pool
fill 20 >/dev/null


# stream_lost CONFIG: the sessions go, by SIGKILL, while the program, $pid, writes, and no other one begins.
stream_lost() {
	rm -f "$TMP/stream"
	REPL_CONFIG=$1 LD_LIBRARY_PATH=$BUILD \
		"$FILL" stream "$TMP/local.set" test 3000 >"$TMP/stream" 2>"$TMP/err" </dev/null &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 10 test -s "$TMP/stream" || fail "stream: $(cat "$TMP/err")"
	# It might be through before that.
	kill -STOP "$pid"
	kill -STOP "$SERVE_PID"
	sessions_kill
	kill -CONT "$pid"
}

stream_lost "$TMP/repl.conf"
wait "$pid" || fail "the program ended with $?: $(cat "$TMP/err")"
kill -CONT "$SERVE_PID"
[ ! -s "$TMP/err" ] || fail "it says: $(cat "$TMP/err")"
grep -q "warning: .*rem.set: REPLICA LOST: ." "$TMP/rpmem.log" || fail "no word of the loss: $(cat "$TMP/rpmem.log")"
grep -q "warning: .*rem.set: closed without it, [1-9][0-9]* drains went without it: ." "$TMP/rpmem.log" ||
	fail "no word of the loss at the end: $(cat "$TMP/rpmem.log")"
ctl info "$T/rem.set" | grep -q "^state *unknown" || fail "state: $(ctl info "$T/rem.set")"

# Somebody who only looks does not make it whole in name.
pmdk pmempool info "$TMP/local.set" >"$TMP/out" 2>&1 || fail "info: $(cat "$TMP/out")"
ctl info "$T/rem.set" | grep -q "^state *unknown" || fail "state: $(ctl info "$T/rem.set")"
filled=$(fill 5) || exit 1
ctl info "$T/rem.set" | grep -q "^state *up-to-date" || fail "state: $(ctl info "$T/rem.set")"
lose_and_sync "$filled"

# With on-loss = block the program waits, and goes on when the replica is back; nothing was acknowledged without it.
(cat "$TMP/repl.conf"; echo "on-loss = block"; echo "block-timeout = 600000") >"$TMP/block.conf"
: >"$TMP/rpmem.log"
stream_lost "$TMP/block.conf"
kill -CONT "$SERVE_PID"
wait "$pid" || fail "the program ended with $?: $(cat "$TMP/err")"
ctl info "$T/rem.set" | grep -q "^state *up-to-date" || fail "state: $(ctl info "$T/rem.set")"
filled=$(walk) || exit 1
lose_and_sync "$filled"

# Longer than block-timeout it does not wait: libpmemobj ends the program as with on-loss = fail, by SIGABRT, or by
# SIGSEGV amid what it does before that.
(cat "$TMP/repl.conf"; echo "on-loss = block"; echo "block-timeout = 100") >"$TMP/block.conf"
stream_lost "$TMP/block.conf"
wait_for 40 gone "$pid" || fail "it waits"
wait "$pid"
status=$?
[ $status -eq 134 ] || [ $status -eq 139 ] || fail "ended with $status: $(cat "$TMP/err")"
kill -CONT "$SERVE_PID"

# Without the target nothing can be had, and that is said.
stop "$SERVE_PID"
cp "$TMP/part0" "$TMP/saved"
rm "$TMP/part0"
pmdk_fails "error: open: .*rem.set: .*(refused|connect)" pmempool sync "$TMP/local.set"
cp "$TMP/saved" "$TMP/part0"
pmdk_fails "rem.set" "$FILL" check "$TMP/local.set" test
