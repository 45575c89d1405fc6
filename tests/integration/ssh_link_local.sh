# SPDX-License-Identifier: BSD-3-Clause
# A link-local address, whose zone is the name of an interface and each side's own, is enough for
# lanes as well, and for the bare TCP that they are measured against.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/link_lib.sh"
# The addresses are there when it is known that nobody else has them.
address() {
	dev=$1
	shift
	ip "$@" -6 -o addr show dev "$dev" scope link -tentative | sed -n 's/.* inet6 \([^ /]*\).*/\1/p' | grep .
}
wait_for 20 address far -n "$ns" && wait_for 20 address "$link" || exit 77
there=$(address far -n "$ns")

# As start_far, which knows IPv4 only.
cat >"$TMP/repld-there" <<END
#!/bin/sh
exec ip netns exec $ns $REPLD "\$@"
END
chmod 755 "$TMP/repld-there"
REPLD=$TMP/repld-there
make_keys
SERVE_ADDRESS="[$there%far]"
start_serve
echo "[$there%$link]:$SERVE_PORT $(cut -d ' ' -f 1,2 "$TMP/serve_host_key.pub")" >>"$TMP/known_hosts"
T="$SERVE_USER@[$there%$link]:$SERVE_PORT"

head -c 3M /dev/urandom >"$TMP/pool"
ctl sync "$TMP/pool" "$T/pool" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
cmp "$TMP/pool" "$TMP/serve/pools/pool" || lost "the replica differs"
ctl bench --seconds 1 "$T" >"$TMP/out" 2>&1 || fail "bench: $(cat "$TMP/out")"
