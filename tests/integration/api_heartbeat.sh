# SPDX-License-Identifier: BSD-3-Clause
# The heartbeat notices a target that died or hangs while nothing is written.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve "heartbeat = 200"
start_api

degraded() {
	api stat 0
	[ "$(field replication)" = 2 ]
}

for how in kill stop; do
	configure "$(pool $how)"
	ok set lanes 1
	stay_lost
	ok anon $MIB
	ok open 1
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	sleep 1
	! degraded || fail "degraded before anything happened: $TEXT"
	hurt $how
	wait_for 4 degraded || fail "a target ($how) is not missed: $TEXT"
	ok persist 0 0 64
	within 100
	ok close
	heal
done
stop_api
