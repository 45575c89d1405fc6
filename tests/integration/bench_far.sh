# SPDX-License-Identifier: BSD-3-Clause
# replctl bench, by itself and of remote logs, goes on with a target to which each round trip takes long: the target
# hears of it in the middle of a part too.
[ -w /dev/shm ] && export TMPDIR=/dev/shm # where slices have many appends
. "$(dirname "$0")/lib.sh"
NETNS=repl-bench-$$
FAR=10.$(($$ % 200 + 20)).$(($$ / 200 % 250))
LINK=$BUILD/tests/lab/lab_link
[ "$(id -u)" -eq 0 ] && [ -x "$LINK" ] && [ -c /dev/net/tun ] || exit 77
ip netns add "$NETNS" 2>/dev/null || exit 77
trap '(status=$?; ip netns del "$NETNS"; exit $status); cleanup' EXIT
mkfifo "$TMP/link"
"$LINK" "rb$$" "$NETNS" 1 <"$TMP/link" >"$TMP/link.said" &
PIDS="$! $PIDS"
exec 9>"$TMP/link"
wait_for 10 grep -q up "$TMP/link.said" || exit 77
ip addr add "$FAR.1/30" dev "rb$$" && ip link set "rb$$" up || exit 77
ip -n "$NETNS" addr add "$FAR.2/30" dev far && ip -n "$NETNS" link set far up &&
	ip -n "$NETNS" link set lo up || exit 77
printf '#!/bin/sh\nexec ip netns exec %s %s "$@"\n' "$NETNS" "$REPLD" >"$TMP/repld-there"
chmod 755 "$TMP/repld-there"
REPLD=$TMP/repld-there
SERVE_ADDRESS=$FAR.2
make_keys
start_serve "heartbeat = 1000" "heartbeat-timeout = 6000"
sed "s/^\[127.0.0.1\]/[$FAR.2]/" "$TMP/known_hosts" >"$TMP/known" && mv "$TMP/known" "$TMP/known_hosts"
T=$SERVE_USER@$FAR.2:$SERVE_PORT

# opened: one more of them has all that it needs to begin with.
opened() {
	[ "$(grep -c "baseline of" "$TMP/serve.log")" -gt "$before" ]
}

for words in "bench --size 4M --seconds 50" "bench remotelog --method message"; do
	before=$(grep -c "baseline of" "$TMP/serve.log")
	ctl_start $words "$T"
	wait_for 20 opened || fail "$words: nothing is measured: $(cat "$TMP/bg.err")"
	echo "both delay 50" >&9
	# Longer than the target bears silence.
	sleep 9
	! gone "$CTL_PID" || fail "$words has ended: $(cat "$TMP/bg.err")"
	kill -INT "$CTL_PID"
	wait_for 60 gone "$CTL_PID" || fail "$words: an interrupt ends it not"
	grep -q interrupted "$TMP/bg.err" || fail "$words: no interrupt is told: $(cat "$TMP/bg.err")"
	! grep -q "has been silent" "$TMP/serve.log" || fail "$words: the target heard nothing"
	echo "both delay 0" >&9
done

# A slice that was short when it began takes minutes, and an interrupt does not wait for its end.
before=$(grep -c "lanes open on" "$TMP/serve.log")
ctl_start bench remotelog --method message "$T"
way_opened() {
	[ "$(grep -c "lanes open on" "$TMP/serve.log")" -gt $((before + 1)) ]
}
wait_for 20 way_opened || fail "nothing is appended: $(cat "$TMP/bg.err")"
sleep 1
echo "both delay 250" >&9
sleep 2
kill -INT "$CTL_PID"
wait_for 30 gone "$CTL_PID" || fail "an interrupt waits for the end of a slice"
echo "both delay 0" >&9
