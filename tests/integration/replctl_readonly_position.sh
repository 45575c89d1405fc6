# SPDX-License-Identifier: BSD-3-Clause
# Of a queued replica whose target was killed and whose file system is read-only since, the data and the position are had all the same.
. "$(dirname "$0")/full_lib.sh"
start_on_disk tmpfs 64m
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
configure "$(pool p)" "$(pool q)"
ok set ack quorum
ok map "$TMP/local" $((4 * MIB))
ok open 1
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))
ok put 0 4096 2
ok persist 0 0 4096

follow() {
	api stat "$1"
	[ "$(field lag_bytes)" = 0 ]
}

wait_for 10 follow 0 && wait_for 10 follow 1 || fail "they do not follow"
# shellcheck disable=SC2046
signalled KILL "$(api_child)" $(sessions)
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
mount -o remount,ro "$pools" || exit 77

ctl newest --json "$T/p" "$T/q" >"$TMP/out" 2>&1 || fail "newest: $(cat "$TMP/out")"
position=$(member replicas.0.position <"$TMP/out")
[ "$position" -gt 0 ] || fail "no position: $(cat "$TMP/out")"
[ -z "$(member replicas.0.note <"$TMP/out")" ] || fail "$(cat "$TMP/out")"
ctl verify "$TMP/local" "$T/p" >"$TMP/out" 2>&1 || lost "verify: $(cat "$TMP/out")"
ctl restore "$T/p" "$TMP/restored" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
grep -q "up to position $position " "$TMP/out" || fail "restore tells no position: $(cat "$TMP/out")"
equal "$TMP/local" "$TMP/restored"

# Where it can be written again nothing has changed.
mount -o remount,rw "$pools" || fail "remount"
ctl newest --json "$T/p" "$T/q" >"$TMP/out" 2>&1 || fail "newest: $(cat "$TMP/out")"
[ "$(member replicas.0.position <"$TMP/out")" = "$position" ] || fail "$(cat "$TMP/out")"
[ "$(stat -c %s "$pools/p.repl")" = 8192 ] || fail "the record stays"
