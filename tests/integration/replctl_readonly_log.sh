# SPDX-License-Identifier: BSD-3-Clause
# A pool with updates in its round log, on a file system that is read-only since, says where it can be opened: copied to another directory.
. "$(dirname "$0")/full_lib.sh"
start_on_disk ext4 64m
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
configure "$(pool p)"
ok map "$TMP/local" $((4 * MIB))
ok open 1
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))
ok put 4096 64 2
ok persist 0 4096 64
# shellcheck disable=SC2046
signalled KILL "$(api_child)" $(sessions)
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
mount -o remount,ro "$pools" || exit 77
ctl_fails 1 "'p.repl'.*file system is read-only.*copy both files" restore "$T/p" "$TMP/restored"

mkdir "$TMP/other"
cp -p "$pools/p" "$pools/p.repl" "$TMP/other"
chown -R "$SERVE_USER" "$TMP/other"
sed "s#^pool-dir = .*#pool-dir = $TMP/other#" "$TMP/repld.conf" >"$TMP/other.conf"
stop "$SERVE_PID"
aside "$TMP/serve.log"
"$REPLD" serve --config "$TMP/other.conf" >"$TMP/serve.log" 2>&1 &
SERVE_PID=$!
serve_ready
ctl restore "$(pool p)" "$TMP/restored" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
equal "$TMP/local" "$TMP/restored"
