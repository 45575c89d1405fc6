# SPDX-License-Identifier: BSD-3-Clause
# A link that goes down without a word is noticed within two seconds, and when it is up again the replica
# comes back by itself.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/link_lib.sh"
start_far
start_api
configure "$FAR/p"
ok set lanes 2
ok set op-timeout 5000
ok set reconnect-max 500
ok set connect-timeout 5000
ok map "$TMP/p" $((8 * MIB))
ok open 1
ok put 0 $((8 * MIB)) 1
ok persist 0 0 $((8 * MIB))

# With nothing written, by the heartbeat.
begin=$(date +%s%3N)
link_down
wait_for 10 degraded 0 || fail "the loss is not noticed: $TEXT"
took=$(($(date +%s%3N) - begin))
echo "noticed after $took ms"
[ "$took" -le 5000 ] || fail "noticed after $took ms"
ok put 4096 65536 2
ok persist 0 4096 65536
within $PROMPT
link_up
wait_for 30 established 0 || fail "the replica does not come back: $TEXT"
ok put 0 64 3
ok persist 0 0 64
ok compare 0
same

# A call under way ends as soon as the heartbeat misses the target, before its own deadline.
link_down
ok put 0 64 4
ok persist 0 0 64
echo "a call returned after $MS ms"
[ "$MS" -ge 200 ] || fail "it took $MS ms: was the link down?"
within 4000
link_up
wait_for 30 established 0 || fail "the replica does not come back: $TEXT"
ok compare 0
same
ok close
equal "$TMP/p" "$TMP/serve/pools/p"
stop_api
