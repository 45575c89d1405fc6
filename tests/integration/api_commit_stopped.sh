# SPDX-License-Identifier: BSD-3-Clause
# A commit that has waited for a lane, held up by a replica that is stopped, does not lose the one that is
# well for want of time.
API_DISK=1 # a sync takes longer than polling would hide
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=1500

make_keys
start_serve
start_api
configure "$(pool p)" "$(pool q)"
ok set lanes 2
ok set on-loss degrade
stay_lost
ok map "$TMP/local" $((2 * MIB))
ok open 1
ok put $MIB $MIB 4
for at in $(seq 200); do
	ok flush 1 $((MIB + at * 4096)) 2000
done
for pid in $(sessions); do
	ls -l "/proc/$pid/fd" 2>/dev/null | grep -q '/pools/q$' && break
done
signalled STOP "$pid"
ok behind 1 1
ok stat 1
is connection 1
ok stat 0
is connection 0
ok read 0 0 $((MIB + 4096)) 2000
same
kill -KILL "$pid"
api close
stop_api
