# SPDX-License-Identifier: BSD-3-Clause
# With all local ports in use that connections of this machine may have, that is what is told, of a login and of a lane:
# nobody is to look for an SSH server.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -n true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -n sh "$0"
fi
. "$(dirname "$0")/lib.sh"
ip link set lo up || exit 77
start_target "data-ports = 39000-39063"
head -c 65536 /dev/urandom >"$TMP/file"
ctl create "$T/p" --size 65536 || fail "create"
# Two for the lanes, each of which takes one; the login's port may be one of them.
echo "40000 40001" >/proc/sys/net/ipv4/ip_local_port_range || exit 77
told='no local port is free.*net\.ipv4\.ip_local_port_range'
ctl_fails 7 "lane [0-9]: 127\.0\.0\.1:390[0-9]*: $told" sync --force "$TMP/file" "$T/p"

echo "40010 40010" >/proc/sys/net/ipv4/ip_local_port_range
hold p read
ctl_fails 7 "127\.0\.0\.1:$SERVE_PORT: $told" list "$T"
grep -q "^next: do what the message says" "$TMP/err" || fail "another next step: $(cat "$TMP/err")"
