#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A sparse pool on a tmpfs: msync(2) of all of it takes no space for its holes. Where there is none left it brings what was
# stored to the replicas all the same, and ends nobody; holes that took the place of data are not called replicated, nor is
# what lies behind a hole of a file that has lost its name.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -m bash "$0"
fi
. "$(dirname "$0")/run_lib.sh"
start_target
here=$TMP/here
mkdir "$here"
mount -t tmpfs -o size=4m tmpfs "$here" || exit 77
trap 'code=$?; umount -l "$here"; (exit $code); cleanup' EXIT

# full STATUS MODE NAME OPTION...
full() {
	local wanted=$1 mode=$2 name=$3 file=$here/$3 status=0

	shift 3
	timeout -k 5 40 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run "$@" --replica "$T/$name" \
		--pool "$file" -- "$BUILD/tests/integration/pmem_odd" "$mode" "$file" >"$TMP/out" 2>&1 || status=$?
	[ $status -eq "$wanted" ] || fail "$name ends with $status: $(cat "$TMP/out")"
	wait_for 10 pool_idle "$name" || fail "$name is still open"
	rm -f "$file.filler"
}

for way in sparse sparse.kin all quorum lag kin; do
	case $way in
	sparse*) full 0 sparse $way --set on-loss=fail ;;
	kin) full 0 full $way --set on-loss=fail ;;
	lag) full 0 full $way --set on-loss=fail --set async-target="$T/lag.2" ;;
	*) full 0 full $way --set on-loss=fail --set ack=$way ;;
	esac
	ctl verify "$here/$way" "$T/$way" >"$TMP/verify.log" 2>&1 || lost "$way: $(cat "$TMP/verify.log" "$TMP/out")"
	[ ! -s "$TMP/out" ] || fail "$way: $(cat "$TMP/out")"
	rm "$here/$way" "$here/$way".repl*
done

full 0 nameless nameless --set on-loss=degrade
grep -q "nameless: byte [0-9]* of it can.t be read: its replicas are compared with it" "$TMP/out" || lost "$(cat "$TMP/out")"
grep -q "nameless: NOT REPLICATED: byte [0-9]* of it can.t be read, nor its name looked up" "$TMP/out" || lost "$(cat "$TMP/out")"
rm "$here"/nameless.repl*

# unfull STATUS POLICY
unfull() {
	full "$1" unfull "$2" --set on-loss="$2"
	grep -q "$2: byte [0-9]* of it can.t be read: its replicas are compared with it" "$TMP/out" || lost "$(cat "$TMP/out")"
	grep -q "$2: NOT REPLICATED: .*of the local pool is full" "$TMP/out" || lost "$(cat "$TMP/out")"
	rm "$here/$2" "$here/$2".repl*
}
unfull 0 degrade
unfull 134 fail

# What libpmem2's functions make durable of memory that is none of its kind goes by msync(2): neither do they look at holes,
# nor where the file is no more.
(run "$here/whole" whole timeout -k 5 40 "$BUILD/tests/integration/pmem_write" whole "$here/whole") >"$TMP/out" 2>&1 ||
	fail "whole ends with $?: $(cat "$TMP/out")"
wait_for 10 pool_idle whole || fail "whole is still open"
[ "$(stat -c %s "$here/whole")" -eq 524288 ] || fail "whole has not got shorter"
cmp "$here/whole" <(head -c 524288 "$TMP/serve/pools/whole") >&2 || lost "whole: what is left differs"
[ "$(grep -c "whole: it was made shorter" "$TMP/out")" -eq 1 ] && [ "$(wc -l <"$TMP/out")" -eq 1 ] || fail "whole says: $(cat "$TMP/out")"
