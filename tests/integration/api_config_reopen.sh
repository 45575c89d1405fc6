# SPDX-License-Identifier: BSD-3-Clause
# A program that is started again while repld does not start on a target, since it is not installed, its configuration
# is wrong or the pool directory gone or another's, goes on without that replica and tells why, unless on-loss = fail;
# it comes back when that is mended. A pool that was never replicated is not begun so.
. "$(dirname "$0")/api_lib.sh"
make_keys
# Where the tests' user is root its repld may not write what others own or nobody may, as any other user's.
as=
[ "$(id -u)" -ne 0 ] || as="setpriv --bounding-set=-dac_override "
start_sshd "Subsystem repl $as$TMP/repld session --config $TMP/far.conf"
pools=$TMP/pools
mkdir -m 700 "$pools"
ln -s "$REPLD" "$TMP/repld"
printf '[repld]\npool-dir = %s\n' "$pools" >"$TMP/far.conf"
far=$USER_NAME@127.0.0.1:$SSHD_PORT/p
start_api

again() {
	stop_api
	start_api
	configure "$far"
	ok set reconnect-min 50
	ok set reconnect-max 200
	ok set on-loss "$1"
	ok map "$TMP/local" $((2 * MIB))
}

# without I TEXT: repld does not start there.
without() {
	again fail
	refused REPL_E_CONFIG "$2" open 0
	again degrade
	ok open 0
	ok put $(($1 * 65536)) 65536 "$1"
	ok persist 0 $(($1 * 65536)) 65536
	ctl why "$TMP/local" | grep -q '^reason *config:' || fail "the reason: $(ctl why "$TMP/local")"
}

# back TEXT
back() {
	wait_for 20 established 0 || fail "$1: it is not back: $TEXT"
	ok compare 0
	same
	ok close
	equal "$TMP/local" "$pools/p"
}

again degrade
mv "$pools" "$pools.away"
refused REPL_E_CONFIG "it refuses to start" open 1
mv "$pools.away" "$pools"
ok open 1
ok put 0 65536 1
ok persist 0 0 65536
ok close

mv "$pools" "$pools.away"
without 1 "it refuses to start"
mv "$pools.away" "$pools"
back "pool directory"

# Its file system is not mounted after a reboot: what is there is the mount point.
mv "$pools" "$pools.away"
mkdir -m 0555 "$pools"
without 4 "is its file system mounted"
rmdir "$pools"
mv "$pools.away" "$pools"
back "mount point"

echo "pol-dir = /none" >>"$TMP/far.conf"
without 2 "it refuses to start"
sed -i '$d' "$TMP/far.conf"
back "configuration"

rm "$TMP/repld"
without 3 "exit status 127"
ln -s "$REPLD" "$TMP/repld"
back "program"
