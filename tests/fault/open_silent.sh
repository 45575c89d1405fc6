# SPDX-License-Identifier: BSD-3-Clause
# A target that says nothing when it is to record the generation of an opening is awaited for longer than another one
# bears silence: that one is no worse for it, and the pool opens with it.
. "$(dirname "$0")/../integration/api_lib.sh"
. "$(dirname "$0")/liar.sh"
start_serve "heartbeat-timeout = 2000"
start_api
OP_TIMEOUT=4000
configure "$T/silent" "$(pool well)"
ok set connect-timeout 4000
stay_lost
ok map "$TMP/p" $MIB
ok open 1
ok put 0 65536 1
ok persist 0 0 65536
ok close

# By the first one it is called equal.
lie '{"method": "pool.mark", "nth": 2, "do": "stall"}'
ok open 1
[ "$MS" -ge 2000 ] || fail "nobody was silent: $MS ms"
ok stat 0
is replication 2
ok stat 1
is replication 0
ok put 4096 4096 2
ok persist 0 4096 4096
ok stat 1
is replication 0
ok compare 1
same
api close
stop_api
