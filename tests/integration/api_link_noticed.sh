# SPDX-License-Identifier: BSD-3-Clause
# By the defaults a link that goes down without a word is noticed within two seconds, well before op-timeout.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/link_lib.sh"
start_far
start_api

ok config
ok set identity "$TMP/key"
ok set known-hosts "$TMP/known_hosts"
ok set target "$FAR/p"
ok anon $MIB
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
link_down
# It waits for an answer until the heartbeat ends that: in 1.5 s from when it asks, every 0.5 s, and 0.1 s for the call.
ok persist 0 0 100
[ "$MS" -ge 500 ] || fail "noticed after $MS ms: was the link down?"
within $((2100 + LATE))
ok stat 0
is replication 2
[[ $TEXT == *"reason="*"silent for 1500 ms: timed out"* ]] || fail "no reason: $TEXT"
# For the session there, which waits for its initiator.
link_up
api close
stop_api
