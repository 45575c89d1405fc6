# SPDX-License-Identifier: BSD-3-Clause
# An append that loses all of many replicas one after the other, whose data network is down and whose targets are well, ends
# by its deadline as with few; and the last one, on another network, has time to answer.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=4000
. "$(dirname "$0")/link_lib.sh"
data=172.31.$((RANDOM % 250))
ip link add "${link}d" type veth peer name data netns "$ns" 2>/dev/null || exit 77
ip addr add "$data.1/24" dev "${link}d" && ip link set "${link}d" up || exit 77
ip -n "$ns" addr add "$data.2/24" dev data && ip -n "$ns" link set data up || exit 77
start_far "data-address = $data.2"
far=$FAR
# A daemon's sessions read its configuration again.
start_near() {
	local TMP=$TMP/near

	mkdir "$TMP"
	cp "$1/authorized_keys" "$TMP/"
	SERVE_ADDRESS=127.0.0.1
	REPLD=$BUILD/repld start_serve
	cat "$TMP/known_hosts" >>"$1/known_hosts"
}
start_near "$TMP"
start_api

targets=()
for i in {1..15}; do
	targets+=("$far/p$i")
done
configure "${targets[@]}" "$(pool last)"
ok set lanes 1
ok set heartbeat-interval 20000
ok set heartbeat-timeout 30000
stay_lost
ok map "$TMP/local" $MIB
ok open 1
ok tail 64 4096
ok persist 0 64 8
ip -n "$ns" link set data down
ok append 0 64 $((MIB / 2)) 100 1
[ "$TEXT" = 4096 ] || lost "place $TEXT"
within $((OP_TIMEOUT * 5 / 4 + LATE))
for i in {0..14}; do
	ok stat "$i"
	is connection 1
done
ok stat 15
is connection 0
ok compare 15
same
api close
stop_api
