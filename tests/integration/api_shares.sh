# SPDX-License-Identifier: BSD-3-Clause
# Threads that make overlapping ranges durable, on lanes of their own, leave the newest bytes on the
# replicas: who comes later does not overtake, and nobody waits for ever.
. "$(dirname "$0")/api_lib.sh"

# shares NAME BYTES NEEDED LINE...: with that configuration; afterwards each replica has all.
shares() {
	name=$1 bytes=$2 needed=$3
	shift 3
	{
		printf '[repl]\nlanes = 4\nidentity = %s\nknown-hosts = %s\non-loss = fail\n' "$TMP/key" "$TMP/known_hosts"
		printf '%s\n' "$@"
	} >"$TMP/$name.conf"
	REPL_CONFIG=$TMP/$name.conf timeout -k 5 60 "$BUILD/tests/integration/api_shares" "$TMP/$name" \
		400 "$bytes" "$needed" >"$TMP/out" 2>&1 || fail_by $? "$name: $(cat "$TMP/out")"
	for target in $(sed -n 's/^[a-z-]*target = //p' "$TMP/$name.conf"); do
		ctl verify "$TMP/$name" "$target" >"$TMP/out" 2>&1 || lost "$name: $(cat "$TMP/out")"
	done
}

start_target
shares line 64 1 "target = $T/line"
shares page 4096 1 "target = $T/page"
# Large ranges are written before their drain.
shares large 1048576 1 "target = $T/large"
shares general 65536 1 "target = $T/general" 'method = general-purpose'
shares appliance 65536 1 "target = $T/appliance" 'method = appliance'
if [ "$(stat -f -c %T "${TMPDIR-/tmp}")" = tmpfs ]; then
	shares ring 65536 1 "target = $T/ring" 'method = deposit-completion'
fi
shares two 65536 2 "target = $T/two-a" "target = $T/two-b"
shares queued 65536 1 "target = $T/queued-a" "async-target = $T/queued-b"
shares quorum 4096 2 "target = $T/q-a" "target = $T/q-b" "target = $T/q-c" 'ack = quorum'
