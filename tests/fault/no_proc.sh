# SPDX-License-Identifier: BSD-3-Clause
# A session has no /proc, as in a bare container: a pool can be written all the same, with a round log or without.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -m bash "$0"
fi
. "$(dirname "$0")/fault.sh"
# The leak sanitizer needs /proc at the end of the program.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

mkdir "$TMP/pools"
printf '%s\n' '[repld]' "pool-dir = $TMP/pools" >"$TMP/repld.conf"
{
	hello
	request pool.create '{"name":"p","size":65536}'
	request pool.open '{"name":"p","mode":"write"}'
	request journal.begin '{"bytes":4096}'
	request journal.drop
	request lanes.open '{"count":1,"msg_size":4096,"depth":2,"providers":["tcp"]}'
	request pool.close
	request bye
} >"$TMP/in"
mount -t tmpfs tmpfs /proc || exit 77
"$REPLD" session --config "$TMP/repld.conf" <"$TMP/in" >"$TMP/out" 2>"$TMP/log"
status=$?
umount /proc
[ $status -eq 0 ] || fail "status $status: $(cat "$TMP/log")"
! grep '"error"' "$TMP/out" || fail "refused"
