# SPDX-License-Identifier: BSD-3-Clause
# With after-crash = dirty-map, too, a log that was opened again after its writers died with records stored
# that no replica had is whole on the replica.
[ -w /dev/shm ] || exit 77
export TMPDIR=/dev/shm
. "$(dirname "$0")/lib.sh"
make_keys
start_serve "heartbeat-timeout = 60000"
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

# ahead HOW POOL
ahead() {
	"$BUILD/tests/integration/log_ahead" "$1" "$TMP/$2" "$T/$2" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" after-crash=dirty-map lanes=4 heartbeat-timeout=60000 op-timeout=60000 \
		2>"$TMP/ahead.log"
}

mkfifo "$TMP/in"
exec 3<>"$TMP/in"
ahead run p <"$TMP/in" >"$TMP/said" &
job=$!
PIDS="$PIDS $job"
wait_for 30 grep -qs ready "$TMP/said" || fail "no log"
program=$(children "$job")
program=${program:-$job}
session=$(children "$(children "$SERVE_PID")")
signalled STOP "$session" || fail "no session"
echo >&3
wait_for 20 grep -q stored "$TMP/said" || fail "no records"
kill -KILL "$program" "$session"
wait_for 20 gone "$program" && wait_for 20 gone "$session" || fail "they do not die"
# Not before its last thread is gone is its lock.
wait "$job" 2>/dev/null

ahead open p >"$TMP/here" || lost "it can't be opened: $(cat "$TMP/ahead.log")"
ctl restore "$T/p" "$TMP/q" >"$TMP/restore.log" 2>&1 || lost "restore"
ahead open q >"$TMP/there" || lost "the log on the replica is damaged"
cat "$TMP/here"
cmp "$TMP/here" "$TMP/there" || lost "the log on the replica has other records"
