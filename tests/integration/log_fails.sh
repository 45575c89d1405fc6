# SPDX-License-Identifier: BSD-3-Clause
# A replica that was away when a log failed has what that has left when its pool is opened again, with
# after-crash = dirty-map, too: its log is whole.
[ -w /dev/shm ] || exit 77
export TMPDIR=/dev/shm
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

no_session_of() {
	! session_of "$1"
}

# again HOW POOL OTHER KEY=VALUE...
again() {
	how=$1
	"$BUILD/tests/integration/log_again" "$1" "$TMP/$2" "$T/$2" identity="$TMP/key" target="$T/$3" \
		known-hosts="$TMP/known_hosts" after-crash=dirty-map lanes=2 "${@:4}" 2>"$TMP/again.log"
}

mkfifo "$TMP/in"
exec 3<>"$TMP/in"
again fails p q op-timeout=3000 reconnect-min=600000 reconnect-max=600000 <"$TMP/in" >"$TMP/said" &
job=$!
PIDS="$PIDS $job"
wait_for 30 grep -qs filled "$TMP/said" || fail "no log"
kill -KILL "$(session_of q)"
wait_for 20 no_session_of q || fail "the session stays"
echo >&3
wait_for 60 gone "$job" || fail "it does not end"
wait "$job" || fail "$(cat "$TMP/again.log")"
grep -q "append: 0" "$TMP/said" && fail "no append has failed"
again log p q || fail "it can't be opened: $(cat "$TMP/again.log")"
ctl verify "$TMP/p" "$T/p" >"$TMP/verify.log" 2>&1 || lost "the first replica differs"
ctl verify "$TMP/p" "$T/q" >"$TMP/verify.log" 2>&1 || lost "the replica differs"
ctl restore "$T/q" "$TMP/r" >"$TMP/restore.log" 2>&1 || fail "restore"
again log r s || lost "the log on the replica is damaged"
