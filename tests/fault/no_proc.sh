# SPDX-License-Identifier: BSD-3-Clause
# A session has no /proc, as in a bare container: a pool can be written all the same, with a round log or without.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -m bash "$0"
fi
. "$(dirname "$0")/fault.sh"
mkdir "$TMP/pools"
printf '%s\n' '[repld]' "pool-dir = $TMP/pools" >"$TMP/repld.conf"
mkfifo "$TMP/in"
"$REPLD" session --config "$TMP/repld.conf" <"$TMP/in" >"$TMP/out" 2>"$TMP/log" &
pid=$!
PIDS="$PIDS $pid"
exec 8>"$TMP/in"

answered() {
	[ "$(grep -c '"id"' "$TMP/out")" -eq "$REQUEST_ID" ]
}

# A sanitizer wants it at the begin and at the end.
hello >&8
wait_for 20 answered || fail "no answer: $(cat "$TMP/log")"
mount -t tmpfs tmpfs /proc || exit 77
{
	request pool.create '{"name":"p","size":65536}'
	request pool.open '{"name":"p","mode":"write"}'
	request journal.begin '{"bytes":4096}'
	request journal.drop
	request lanes.open '{"count":1,"msg_size":4096,"depth":2,"providers":["tcp"]}'
	request pool.close
} >&8
all=0
wait_for 20 answered || all=1
umount /proc
[ "$all" -eq 0 ] || fail "no answer: $(cat "$TMP/log")"
request bye >&8
exec 8>&-
wait "$pid" || fail "status $?: $(cat "$TMP/log")"
! grep '"error"' "$TMP/out" || fail "refused"
