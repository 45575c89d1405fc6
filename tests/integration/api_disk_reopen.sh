# SPDX-License-Identifier: BSD-3-Clause
# A program that is started again while the file system of a target is read-only or shut down, as one whose disk fails,
# goes on without that replica and tells why, unless on-loss = fail; it comes back when the file system does.
. "$(dirname "$0")/full_lib.sh"

start_on_disk ext4 64m

again() {
	stop_api
	start_api
	configure "$(pool p)"
	ok set reconnect-max 200
	ok set lanes 2
	ok set on-loss "$1"
	ok map "$TMP/local" $((4 * MIB + 777))
}

# without I TEXT: it can't be opened there.
without() {
	again fail
	refused REPL_E_IO "$2" open 4
	again degrade
	ok open 4
	ok put "$1" 65536 "$1"
	ok persist 0 "$1" 65536
	ctl why "$TMP/local" | grep -q '^reason *target-io:' || fail "the reason: $(ctl why "$TMP/local")"
}

again degrade
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
ok close
wait_for 20 no_sessions || fail "a session stays"

mount -o remount,ro "$pools" || exit 77
without 1048576 "Read-only file system"
mount -o remount,rw "$pools" || fail "remount"
back "read-only"
ok close
wait_for 20 no_sessions || fail "a session stays"
equal "$TMP/local" "$pools/p"

shut_down
without 2097152 "Input/output error|error 5"
mount_again
back "shut down"
ok close
equal "$TMP/local" "$pools/p"
stop_api
