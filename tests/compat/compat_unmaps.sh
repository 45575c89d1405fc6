# SPDX-License-Identifier: BSD-3-Clause
# A replica that gets what it missed gets it whole when the program unmaps the pool meanwhile, as libpmemobj does before it
# closes the replicas; and the program goes on.
OWN_PROGRAM=1
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set unmaps.set "OPTION NOHDRS" "24M unmaps.part"
printf 'reconnect-min = 1500\nresync-rate = 8M\n' >>"$TMP/repl.conf"
REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD "$BUILD/tests/compat/rpmem_unmaps" "$T" "$TMP/own" \
	>"$TMP/stream" 2>"$TMP/err" </dev/null &
pid=$!
PIDS="$PIDS $pid"
is_running() {
	! gone "$pid" || fail "it has ended: $(cat "$TMP/err")"
	"$@"
}
wait_for 20 is_running test -s "$TMP/stream" || fail "not made: $(cat "$TMP/err")"
sessions_kill
touch "$TMP/own.lost"

# Its journal grows.
comes() {
	[ "$(stat -c %s "$POOLS/unmaps.set.repl")" -gt 2000000 ]
}
wait_for 30 is_running comes || fail "it does not come back: $(cat "$TMP/rpmem.log")"
touch "$TMP/own.back"
is_whole() {
	cmp -s "$TMP/own" "$POOLS/unmaps.part"
}
wait_for 30 is_running is_whole || lost "it has not what the pool has"
# A round that is no last one has brought it; it is told so when it is the pool's replica again.
is_back() {
	ctl info "$T/unmaps.set" 2>/dev/null | grep -q "^state  *up-to-date"
}
wait_for 30 is_running is_back || fail "it is not back: $(cat "$TMP/rpmem.log")"
touch "$TMP/own.done"
wait_for 20 gone "$pid" || fail "it does not end"
wait "$pid" || fail "ends with $?: $(cat "$TMP/err")"
is_whole || lost "it has not what the pool had"
ctl info "$T/unmaps.set" >"$TMP/out" 2>&1 || fail "info: $(cat "$TMP/out")"
grep -q "^state  *up-to-date" "$TMP/out" || fail "$(cat "$TMP/out")"
