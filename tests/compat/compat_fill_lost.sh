# SPDX-License-Identifier: BSD-3-Clause
# A copy by pmempool transform whose target is lost in the middle is an error, and the pool is as it was.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set rem.set "256M rem.part"
printf 'PMEMPOOLSET\n256M %s\n' "$TMP/part0" >"$TMP/alone.set"
printf 'PMEMPOOLSET\n256M %s\nREPLICA %s rem.set\n' "$TMP/part0" "$T" >"$TMP/local.set"
pmdk pmempool create obj --layout=test "$TMP/alone.set" >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
filled=$(pmdk "$FILL" fill "$TMP/alone.set" test 50 2>"$TMP/err") || fail "fill: $(cat "$TMP/err")"

# The sessions that have the part mapped, and with it lanes.
sessions() {
	for child in $(pgrep -P "$SERVE_PID"); do
		for session in $(pgrep -P "$child"); do
			! grep -qs "/rem.part" "/proc/$session/maps" || echo "$session"
		done
	done
}

# Behind the header, which the target makes itself.
copying() {
	gone "$pid" || tail -c +4097 "$POOLS/rem.part" 2>/dev/null | head -c 4M | tr -d '\0' | read -rn 1
}

REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD pmempool transform "$TMP/alone.set" "$TMP/local.set" \
	>"$TMP/out" 2>&1 </dev/null &
pid=$!
PIDS="$PIDS $pid"
until copying; do
	:
done
kill -STOP "$pid" || fail "transform: $(cat "$TMP/out")"
for session in $(sessions); do
	kill -KILL "$session"
done
kill -CONT "$pid"
! wait "$pid" || fail "transform says that it is done: $(cat "$TMP/rpmem.log")"
# PMDK has taken it away again.
! ctl info "$T/rem.set" >"$TMP/out" 2>&1 || fail "it is there: $(cat "$TMP/out")"
found=$(pmdk "$FILL" check "$TMP/alone.set" test) || lost "the pool is not as it was"
[ "$found" = "$filled" ] || lost "'$found' in place of '$filled'"
