#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two machines over verbs: pools are replicated from one to the other by all lanes; the wire is cut without
# a word and mended, and the replica comes back by itself; what is stored after a loss, where the RNIC was sending
# from, does not get there when the wire is mended; the power of the target goes, and the program goes on.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${BUILD:?directory of the built programs}"
TMP=$(mktemp -d /tmp/guest-test.XXXXXX) || exit 1
mkdir "$TMP/shared"
target=
trap '[ -z "$target" ] || kill "$target" 2>/dev/null; wait; rm -rf "$TMP"' EXIT

# machine NAME ID PEER: in the background; its output goes to $TMP/NAME.
machine()
{
	exec "$here/guest.sh" --mem 1200 --timeout 500 --id "$2" --bind "$TMP/shared" "${@:4}" \
		--pidfile "$TMP/$1.pid" --net \
		"dgram,local.type=unix,local.path=$TMP/$1.wire,remote.type=unix,remote.path=$TMP/$3.wire" \
		-- env BUILD="$BUILD" bash "$here/verbs_two_guest.sh" "$1" "$TMP/shared" >"$TMP/$1" 2>&1
}

machine target 1 initiator &
target=$!
machine initiator 2 target --pmem "$TMP/nvdimm:64M" &
initiator=$!
# The target's power is cut when the initiator asks for it.
until [ -e "$TMP/shared/cut_power" ] || ! kill -0 $initiator 2>/dev/null; do
	sleep 0.2
done
[ ! -s "$TMP/target.pid" ] || kill -KILL "$(cat "$TMP/target.pid")"
touch "$TMP/shared/power_is_cut"
wait $initiator
status=$?
wait $target
target_status=$?
target=
cat "$TMP/initiator"
if [ $status -ne 0 ] || [ $target_status -ne 125 ]; then
	cat "$TMP/target"
	[ $status -ne 0 ] || status=1
fi
exit $status
