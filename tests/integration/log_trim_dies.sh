# SPDX-License-Identifier: BSD-3-Clause
# What a target was still to make zero when it died together with the program is copied when the pool is
# opened next, however long ago it was trimmed.
[ -w /dev/shm ] || exit 77
export TMPDIR=/dev/shm
. "$(dirname "$0")/lib.sh"
make_keys
start_serve "heartbeat-timeout = 60000"
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

again() {
	how=$1
	shift
	"$BUILD/tests/integration/log_again" "$how" "$TMP/p" "$T/p" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" after-crash=dirty-map lanes=1 heartbeat-timeout=60000 2>"$TMP/again.log"
}

mkfifo "$TMP/in"
exec 3<>"$TMP/in"
again dies <"$TMP/in" >"$TMP/said" &
job=$!
PIDS="$PIDS $job"
wait_for 30 grep -qs filled "$TMP/said" || fail "no log"
program=$(children "$job")
program=${program:-$job}
session=$(children "$(children "$SERVE_PID")")
echo "$session" >&3
wait_for 20 grep -q trimmed "$TMP/said" || fail "no trim"
cmp "$TMP/p" "$TMP/serve/pools/p" && exit 77
# Longer than what is written to lately is known for.
sleep 20
kill -KILL "$program" "$session"
wait_for 20 gone "$program" && wait_for 20 gone "$session" || fail "they do not die"
# Not before its last thread is gone is its lock.
wait "$job" 2>/dev/null
again open || fail "it can't be opened: $(cat "$TMP/again.log")"
ctl verify "$TMP/p" "$T/p" >"$TMP/verify.log" 2>&1 || lost "the replica differs"
