# SPDX-License-Identifier: BSD-3-Clause
# far_lib.sh - on top of lib.sh or api_lib.sh: a link that takes its time; root only.
#
#   $FAR.1, $FAR.2   addresses here, and at its other end in the network namespace $NETNS
#   link WORDS       tells lab_link, such as "both delay 50"
#   start_far LINE.. repld serve at the other end, with lines for its configuration; $FAR_TARGET
#   start_far_beside LINE..  one at the other end beside one here, whose keys, functions and lines are as ever; $FAR_TARGET,
#                    $FAR_PID
[ "$(id -u)" -eq 0 ] && [ -x "$BUILD/tests/lab/lab_link" ] && [ -c /dev/net/tun ] || exit 77
NETNS=repl-far-$$
FAR=10.$(($$ % 200 + 20)).$(($$ / 200 % 250))
ip netns add "$NETNS" 2>/dev/null || exit 77
trap '(status=$?; ip netns del "$NETNS" 2>/dev/null; exit $status); cleanup' EXIT
mkfifo "$TMP/link"
"$BUILD/tests/lab/lab_link" "rf$$" "$NETNS" 1 <"$TMP/link" >"$TMP/link.said" &
PIDS="$! $PIDS"
exec 9>"$TMP/link"
wait_for 10 grep -q up "$TMP/link.said" || exit 77
ip addr add "$FAR.1/30" dev "rf$$" && ip link set "rf$$" up || exit 77
ip -n "$NETNS" addr add "$FAR.2/30" dev far && ip -n "$NETNS" link set far up &&
	ip -n "$NETNS" link set lo up || exit 77

link() {
	echo "$*" >&9
}

start_far() {
	printf '#!/bin/sh\nexec ip netns exec %s %s "$@"\n' "$NETNS" "$REPLD" >"$TMP/repld-there"
	chmod 755 "$TMP/repld-there"
	REPLD=$TMP/repld-there
	make_keys
	SERVE_ADDRESS=$FAR.2
	start_serve "$@"
	sed "s/^\[127.0.0.1\]/[$FAR.2]/" "$TMP/known_hosts" >"$TMP/known" &&
		mv "$TMP/known" "$TMP/known_hosts"
	FAR_TARGET=$SERVE_USER@$FAR.2:$SERVE_PORT
}

# The far one first: the functions know one server only, and the near one stays theirs.
start_far_beside() {
	local port

	make_keys
	mkdir -p "$TMP/far/pools"
	cp "$TMP/authorized_keys" "$TMP/far/authorized_keys"
	chown -R "$SERVE_USER" "$TMP/far"
	cat >"$TMP/far.conf" <<CONF
[repld]
pool-dir = $TMP/far/pools
listen = $FAR.2:0
host-key = $TMP/far/host_key
authorized-keys = $TMP/far/authorized_keys
user = $SERVE_USER
CONF
	ip netns exec "$NETNS" "$REPLD" serve --config "$TMP/far.conf" >"$TMP/far.log" 2>&1 &
	FAR_PID=$!
	PIDS="$FAR_PID $PIDS"
	wait_for 10 grep -q "listening on" "$TMP/far.log" || fail "the far target does not start"
	port=$(sed -n 's/.*listening on .*:\([0-9][0-9]*\)$/\1/p' "$TMP/far.log")
	start_serve "$@"
	ssh-keygen -y -f "$TMP/far/host_key" | cut -d ' ' -f 1,2 |
		sed "s/^/[$FAR.2]:$port /" >>"$TMP/known_hosts"
	FAR_TARGET=$SERVE_USER@$FAR.2:$port
}
