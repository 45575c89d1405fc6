# SPDX-License-Identifier: BSD-3-Clause
# A loss that no call has found, while others hang: the call in flight returns by its deadline, and who is well stays.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=4000
make_keys
start_serve
start_api
configure "$(pool a)" "$(pool b)" "$(pool c)" "$(pool d)" "$(pool e)" "$(pool well)"
ok set heartbeat-timeout 60000
stay_lost
ok map "$TMP/p" $MIB
ok open 1
ok put 0 64 1
ok persist 0 0 64
hanging=
for p in b c d e; do
	hanging="$hanging $(session_of "$p")"
done
signalled STOP $hanging
# When most of the call's time is over: it waits until that loss is recorded on those that hang too.
{
	sleep 2.9
	ctl pause "$TMP/p" "$(pool a)" >/dev/null 2>"$TMP/err"
} &
paused=$!
ok put 0 64 2
ok persist 0 0 64
within $((OP_TIMEOUT + LATE))
wait "$paused" || fail "pause: $(cat "$TMP/err")"
for i in 0 1 2 3 4; do
	ok stat $i
	is replication 2
done
ok stat 5
is replication 0
ok compare 5
same
kill -KILL $hanging
ok close
stop_api
