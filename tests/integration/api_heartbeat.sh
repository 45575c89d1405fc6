# SPDX-License-Identifier: BSD-3-Clause
# The heartbeat notices a target that died or hangs while nothing is written.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve "heartbeat = 200"
start_api

for how in kill stop; do
	configure "$(pool $how)"
	ok set lanes 1
	stay_lost
	ok anon $MIB
	ok open 1
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	sleep 1
	! degraded 0 || fail "degraded before anything happened: $TEXT"
	hurt $how
	wait_for 20 degraded 0 || fail "a target ($how) is not missed: $TEXT"
	ok persist 0 0 64
	within $PROMPT
	ok close
	heal
done
stop_api
