# SPDX-License-Identifier: BSD-3-Clause
# A pool's file that an administrator cuts, or puts an older one in its place, while a program has it: it is no
# replica until all of it was compared, also when the file has its size again.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
pools=$TMP/serve/pools
configure "$(pool p)"
ok set lanes 2
ok set reconnect-min 100
ok set reconnect-max 200
ok map "$TMP/p" $MIB
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB

given_up() {
	api stat 0
	[ "$(field replication)" = 2 ] && [ "$(field data)" != 0 ]
}

reason() {
	[ "$(ctl --json status "$TMP/${2:-p}" | member replicas.0.reason)" = "$1" ]
}

# whole_again WHAT: it comes back, and nothing that was not written again is missing.
whole_again() {
	wait_for 20 established 0 || fail "$1: it does not come back: $TEXT"
	ok compare 0
	same
}

# Where nobody writes: the heartbeat finds it.
truncate -s 64K "$pools/p"
wait_for 10 given_up || fail "cut: still called up to date: $TEXT"
wait_for 10 reason damaged || fail "cut: $(ctl why "$TMP/p")"
grep -q "pool 'p': its file was cut by another hand" "$TMP/serve.log" || fail "nothing in the target's log"
ok put 0 64 2
ok persist 0 0 64
truncate -s $MIB "$pools/p"
whole_again cut

# Where the program writes: the session ends by SIGBUS, the next one finds it.
truncate -s 64K "$pools/p"
ok put 500000 64 3
ok persist 0 500000 64
wait_for 10 given_up || fail "cut and written: $TEXT"
wait_for 10 reason damaged || fail "cut and written: $(ctl why "$TMP/p")"
truncate -s $MIB "$pools/p"
whole_again "cut and written"

# An older file takes its place.
cp -p "$pools/p" "$TMP/old"
ok put 4096 4096 4
ok persist 0 4096 4096
mv "$TMP/old" "$pools/p"
wait_for 10 given_up || fail "replaced: still called up to date: $TEXT"
whole_again replaced
ok close

# What was cut does not come back as zeros with a growth that the heartbeat has not been before. The program's own interval
# counts only where the target does not ask for a shorter one.
stop "$SERVE_PID"
start_serve "heartbeat = 20000" "heartbeat-timeout = 60000"
configure "$(pool g)"
ok set lanes 2
ok set reconnect-min 100
ok set reconnect-max 200
ok set heartbeat-timeout 60000
ok set heartbeat-interval 20000
ok map "$TMP/g" $MIB
ok open 1
ok put 0 $MIB 5
ok persist 0 0 $MIB
truncate -s 64K "$pools/g"
ok extend $((2 * MIB))
refused REPL_E_CORRUPT "replica 0: .*'g': its file was cut to 65536 bytes of $MIB" grow $((2 * MIB))
[ "$(stat -c %s "$pools/g")" = 65536 ] || lost "what was cut is zeros now"
ok put 0 64 6
ok persist 0 0 64
wait_for 10 given_up || fail "cut and grown: still called up to date: $TEXT"
wait_for 10 reason damaged g || fail "cut and grown: $(ctl why "$TMP/g")"
truncate -s $MIB "$pools/g"
wait_for 20 established 0 || fail "cut and grown: it does not come back: $TEXT"
ok grow $((2 * MIB))
ok compare 0
same
ok close
stop_api
