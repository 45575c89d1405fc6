# SPDX-License-Identifier: BSD-3-Clause
# A call whose lane, or whose bytes on another lane, are in use for longer than op-timeout is held up, and does not fail:
# libpmemobj would end the program.
OWN_PROGRAM=1
. "$(dirname "$0")/compat_lib.sh"
start_compat "heartbeat-timeout = 3000"
echo "op-timeout = 1000" >>"$TMP/repl.conf"
target_set busy.set "OPTION NOHDRS" "4M busy.part"
pmdk "$BUILD/tests/compat/rpmem_busy" "$T" >"$TMP/out" 2>&1 || fail "ends with $?: $(cat "$TMP/out")"
[ "$(head -c 16384 "$POOLS/busy.part" | tr -d b | wc -c)" -eq 0 ] || lost "bytes are missing"

# Nor is one lost that is compared, or copied into, before the first write, where no thread can be made.
for state in outdated inconsistent; do
	mark_pool busy.set "$state"
	pmdk "$BUILD/tests/compat/rpmem_busy" "$T" threadless >"$TMP/out" 2>&1 || fail "ends with $?: $(cat "$TMP/out")"
	ctl info "$T/busy.set" | grep -q "^state *up-to-date" || fail "$(ctl info "$T/busy.set"; cat "$TMP/rpmem.log")"
	[ "$(tr -d c <"$POOLS/busy.part" | wc -c)" -eq 0 ] || lost "bytes are missing"
done
# Nor is one that hears nothing from the first write, which this machine's disk holds up for longer than targets bear.
for state in up-to-date outdated; do
	[ $state = up-to-date ] || mark_pool busy.set "$state"
	pmdk "$BUILD/tests/compat/rpmem_busy" "$T" stalled >"$TMP/out" 2>&1 || fail "ends with $?: $(cat "$TMP/out")"
	! grep "REPLICA LOST" "$TMP/rpmem.log" || fail "$state: the replica was lost"
done
ctl remove --force "$T/busy.set" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"

# Threads that persist one word wait for each other, of a program that is stopped for longer than that.
target_set busy.set "OPTION NOHDRS" "4M busy.part"
REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD "$BUILD/tests/compat/rpmem_busy" "$T" stopped \
	>"$TMP/stream" 2>"$TMP/err" </dev/null &
pid=$!
PIDS="$PIDS $pid"
wait_for 20 grep -q begun "$TMP/stream" || fail "not begun: $(cat "$TMP/err")"
is_busy() {
	gone "$pid" && return
	kill -STOP "$pid"
	sleep 1.2
	kill -CONT "$pid"
	wait_for 1 gone "$pid" || return 1
}
wait_for 60 is_busy || fail "no lane was in use"
wait "$pid" || fail "ends with $?: $(cat "$TMP/err" "$TMP/rpmem.log")"
[ "$(tail -n 1 "$TMP/stream")" = busy ] || fail "it says: $(cat "$TMP/stream")"
