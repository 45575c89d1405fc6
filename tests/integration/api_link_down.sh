# SPDX-License-Identifier: BSD-3-Clause
# When the link to the target goes down without a word each call still returns by its deadline.
. "$(dirname "$0")/api_lib.sh"
[ "$(id -u)" -eq 0 ] || exit 77
ns=repl-test-$$
link=rt$$
net=10.$((RANDOM % 200 + 20)).$((RANDOM % 250))
ip netns add "$ns" 2>/dev/null || exit 77
trap 'ip netns del "$ns"; cleanup' EXIT
ip link add "$link" type veth peer name far netns "$ns" 2>/dev/null || exit 77
ip addr add "$net.1/24" dev "$link" && ip link set "$link" up || exit 77
ip -n "$ns" addr add "$net.2/24" dev far && ip -n "$ns" link set far up || exit 77
ip -n "$ns" link set lo up

# repld serve on the other end of the link.
cat >"$TMP/repld-there" <<END
#!/bin/sh
exec ip netns exec $ns $REPLD "\$@"
END
chmod 755 "$TMP/repld-there"
REPLD=$TMP/repld-there
make_keys
SERVE_ADDRESS=$net.2
start_serve
echo "[$net.2]:$SERVE_PORT $(cut -d ' ' -f 1,2 "$TMP/serve_host_key.pub")" >>"$TMP/known_hosts"
start_api
for policy in degrade fail; do
	configure "$SERVE_USER@$net.2:$SERVE_PORT/$policy"
	ok set lanes 2
	ok set on-loss $policy
	stay_lost
	ok set connect-timeout 1000
	ok map "$TMP/$policy" $MIB
	ok open 1
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	ip link set "$link" down
	lost_call $policy persist 0 0 100
	[ "$MS" -ge 500 ] || fail "noticed after $MS ms: was the link down?"
	within $((OP_TIMEOUT + LATE))
	lost_call $policy persist 1 0 $MIB
	within 100
	refused REPL_E_LOST "lost" read 1 0 0 8
	ok stat 0
	is replication 2
	[[ $TEXT == *reason=*time* ]] || fail "no reason: $TEXT"
	api close
	within $((2000 + LATE))
	refused "REPL_E_(TIMEOUT|UNREACHABLE)" "$net.2" open 0
	within $((1000 + LATE))
	ip link set "$link" up
	# The session there still waits for its initiator; the next pool is another one.
	wait_for 5 timeout 1 bash -c ": </dev/tcp/$net.2/$SERVE_PORT" || fail "the link does not come back"
done
stop_api
