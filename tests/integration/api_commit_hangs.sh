# SPDX-License-Identifier: BSD-3-Clause
# A commit whose first lane has waited for a replica that is stopped does not lose, for want of time,
# the one that is well: what is drained on the next lanes takes it more than one answer.
API_DISK=1 # a sync takes longer than polling would hide
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=4000

make_keys
start_serve
start_api
configure "$(pool p)" "$(pool q)"
ok set lanes 3
ok set on-loss degrade
stay_lost
ok map "$TMP/local" $((64 * MIB))
ok open 1
ok put 0 $((64 * MIB)) 4
ok flush 0 0 4096
ok flush 1 $((4 * MIB)) $((24 * MIB))
ok flush 2 $((32 * MIB)) $((24 * MIB))
for pid in $(sessions); do
	ls -l "/proc/$pid/fd" 2>/dev/null | grep -q '/pools/q$' && break
done
signalled STOP "$pid"
ok commit 0
ok stat 1
is connection 1
ok stat 0
is connection 0
ok read 0 0 $((55 * MIB)) 4096
same
kill -KILL "$pid"
api close
stop_api
