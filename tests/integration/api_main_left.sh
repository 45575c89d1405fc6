# SPDX-License-Identifier: BSD-3-Clause
# A program whose main() has left by pthread_exit(3) has all that others have, though of /proc/self there is nothing left then:
# the record of its file and the lock on it, the socket to be asked by, and a replica that comes back.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

# has_all POOL SOCKET: what is open is on record, locked, and can be asked; its replica is lost and comes back.
has_all() {
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	[ -s "$TMP/$1.repl" ] || fail "$1: no record is kept"
	ctl status "$2" >"$TMP/out" 2>"$TMP/err" || fail "$1: status: $(cat "$TMP/err")"
	ctl_fails 4 "locked|in use" restore --force "$T/$1" "$TMP/$1"
	hurt kill
	ok put 0 4096 2
	ok persist 0 0 4096
	wait_for 20 established 0 || fail "$1: it does not come back: $TEXT"
	ok compare 0
	same
	ok close
	stop_api
	equal "$TMP/$1" "$TMP/serve/pools/$1"
	wait_for 20 no_sessions || fail "sessions stay"
}

# begin POOL
begin() {
	start_api
	configure "$(pool "$1")"
	ok set reconnect-max 500
	ok map "$TMP/$1" $MIB
}

begin late
ok leave
ok open 1
has_all late "$TMP/late"
begin named
ok set status-socket "$TMP/socket"
ok leave
ok open 1
has_all named "$TMP/socket"

# What is mapped from its second page on is a part of a file there, too.
start_api
configure "$(pool part)"
ok map "$TMP/part" $MIB 4096
ok leave
refused REPL_E_INVAL "byte 4096 of $TMP/part.*pool-file" open 1
stop_api
