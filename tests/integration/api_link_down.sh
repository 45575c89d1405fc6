# SPDX-License-Identifier: BSD-3-Clause
# When the link to the target goes down without a word each call still returns by its deadline.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=1500
. "$(dirname "$0")/link_lib.sh"
start_far
start_api
for policy in degrade fail; do
	configure "$FAR/$policy"
	ok set lanes 2
	ok set on-loss $policy
	stay_lost
	ok map "$TMP/$policy" $MIB
	ok open 1
	# For the next one.
	ok set connect-timeout 1000
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	link_down
	lost_call $policy persist 0 0 100
	[ "$MS" -ge 500 ] || fail "noticed after $MS ms: was the link down?"
	within $((OP_TIMEOUT + LATE))
	lost_call $policy persist 1 0 $MIB
	within $PROMPT
	refused REPL_E_LOST "lost" read 1 0 0 8
	ok stat 0
	is replication 2
	[[ $TEXT == *reason=*time* ]] || fail "no reason: $TEXT"
	api close
	within $((2000 + LATE))
	if [ $policy = degrade ]; then
		ok open 0
		within $((1000 + LATE))
		ok close
	else
		refused "REPL_E_(TIMEOUT|UNREACHABLE)" "$net.2" open 0
	fi
	within $((1000 + LATE))
	# The session there still waits for its initiator; the next pool is another one.
	link_up
done
stop_api
