# SPDX-License-Identifier: BSD-3-Clause
# A replica comes back while a large log is appended to, and trimmed on a lane of its own: what was trimmed
# before it was lost is looked at once, and it is an older copy, but a whole one, until it is up to date.
[ -w /dev/shm ] || exit 77
export TMPDIR=/dev/shm
. "$(dirname "$0")/api_lib.sh"
BACK=$BUILD/tests/integration/log_back

make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
"$BACK" trim 2 "$TMP/p" "$T/p" identity="$TMP/key" known-hosts="$TMP/known_hosts" lanes=2 reconnect-max=100 \
	op-timeout=10000 >"$TMP/said" 2>"$TMP/back.log" &
writer=$!
PIDS="$PIDS $writer"
wait_for 60 grep -qs ready "$TMP/said" || fail "no log: $(cat "$TMP/back.log")"
kill -KILL "$(session_of p)"
wait_for 60 gone "$writer" || lost "the replica does not come back"
wait "$writer" || fail "$(cat "$TMP/back.log")"
grep -q inconsistent "$TMP/said" && lost "it was inconsistent on its way: $(tail -n 1 "$TMP/said")"
moved=$(sed -n 's/ MiB.*//p' "$TMP/said")
[ "$moved" -lt 128 ] || lost "$moved MiB were sent, of a log of 256 that lacked a few"
ctl verify "$TMP/p" "$T/p" >"$TMP/verify.log" 2>&1 || lost "the replica differs"
