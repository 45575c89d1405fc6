# SPDX-License-Identifier: BSD-3-Clause
# link_lib.sh - on top of api_lib.sh: repld serve at the other end of a link that can go down; root only.
#
#   start_far              keys and repld serve in a network namespace; $FAR is its name
#   link_down, link_up     the link
[ "$(id -u)" -eq 0 ] || exit 77
ns=repl-test-$$
link=rt$$
net=10.$((RANDOM % 200 + 20)).$((RANDOM % 250))
ip netns add "$ns" 2>/dev/null || exit 77
trap '(status=$?; ip netns del "$ns"; exit $status); cleanup' EXIT
ip link add "$link" type veth peer name far netns "$ns" 2>/dev/null || exit 77
ip addr add "$net.1/24" dev "$link" && ip link set "$link" up || exit 77
ip -n "$ns" addr add "$net.2/24" dev far && ip -n "$ns" link set far up || exit 77
ip -n "$ns" link set lo up

start_far() {
	cat >"$TMP/repld-there" <<END
#!/bin/sh
exec ip netns exec $ns $REPLD "\$@"
END
	chmod 755 "$TMP/repld-there"
	REPLD=$TMP/repld-there
	make_keys
	SERVE_ADDRESS=$net.2
	start_serve "$@"
	echo "[$net.2]:$SERVE_PORT $(cut -d ' ' -f 1,2 "$TMP/serve_host_key.pub")" >>"$TMP/known_hosts"
	FAR=$SERVE_USER@$net.2:$SERVE_PORT
}

link_down() {
	ip link set "$link" down
}

link_up() {
	ip link set "$link" up
	wait_for 20 timeout 1 bash -c ": </dev/tcp/$net.2/$SERVE_PORT" ||
		fail "the link does not come back"
}
