# SPDX-License-Identifier: BSD-3-Clause
# A name server that never answers is a timeout by the deadline.
. "$(dirname "$0")/lib.sh"
make_keys
# The name server needs port 53 and a resolv.conf in a mount namespace.
[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.9", 53))
print("ready", flush=True)
time.sleep(30)
' >"$TMP/ready" 2>/dev/null &
PIDS="$PIDS $!"
wait_for 20 test -s "$TMP/ready" || exit 77
echo "nameserver 127.0.0.9" >"$TMP/resolv.conf"
cat >"$TMP/inside.sh" <<-END
	mount --bind "$TMP/resolv.conf" /etc/resolv.conf || exit 1
	exec "$CHANNEL_CAT" -t 700 -i "$TMP/key" -k "$TMP/known_hosts" cat host.example.org
END
began=$(date +%s%N)
expect_error timeout "host\.example\.org:22.*resolver" unshare -m sh "$TMP/inside.sh"
took=$((($(date +%s%N) - began) / 1000000))
[ "$took" -ge 600 ] && [ "$took" -le 3000 ] || fail "took $took ms, not 700"
