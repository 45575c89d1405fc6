# SPDX-License-Identifier: BSD-3-Clause
# transfer.sh [NAME] - sync and restore between two places of one tmpfs, taking turns
# with bare TCP streams of the same size: between buffers that stay in the cache, and of
# the same file into another one, new or not (tcp_file). Lines "WHAT VALUE" go to
# $RESULTS/NAME, which is transfer: bytes a second, and bytes on the wire. Used by run.sh.
name=${1:-transfer}
. "$(dirname "$0")/../integration/lib.sh"

mib=1024 rounds=7
[ -z "$QUICK" ] || { mib=128 rounds=3; }
make_keys
start_serve
pool=$SERVE_USER@127.0.0.1:$SERVE_PORT/p.pool

replctl() {
	"$BUILD/replctl" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" --json "$@" \
		>"$TMP/answer" 2>"$TMP/replctl.log" || fail "replctl $*"
}

lo_bytes() {
	awk '$1 == "lo:" { print $2 }' /proc/net/dev
}

# timed WHAT ARGUMENT...: a command of replctl's, its rate, what went over loopback.
timed() {
	what=$1
	shift
	before=$(lo_bytes)
	replctl "$@"
	after=$(lo_bytes)
	python3 -c '
import json, sys
a = json.load(open(sys.argv[1]))
print(sys.argv[2], a["size"] * 1000 / max(a["duration_ms"], 1))
print(sys.argv[2] + "-wire", sys.argv[3])' "$TMP/answer" "$what" $((after - before))
}

fill() {
	head -c "${mib}M" /dev/urandom >"$TMP/new"
	cat "$TMP/new" >"$TMP/file"
}

# Free pages that this machine has never had, or has given back to its host, cost whoever takes
# them next up to ten times what others do. So each that takes new ones gets some that
# were freed a moment ago.
fresh() {
	head -c "$((mib + mib / 8))M" /dev/zero >"$TMP/pages"
	rm "$TMP/pages"
}

round() {
	"$BUILD/tests/bench/tcp_baseline" 127.0.0.1 100 "$mib" | awk '/^stream/ {
		sub(",", "", $6); print "tcp-out", $6 * 2 ^ 30; print "tcp-in", $9 * 2 ^ 30 }'
	fill
	rm -f "$TMP/copy"
	fresh
	"$BUILD/tests/bench/tcp_file" "$TMP/file" "$TMP/copy" | awk '/^file/ {
		sub(",", "", $6); print "file-new", $6 * 2 ^ 30; print "file-again", $9 * 2 ^ 30 }'
	rm -f "$TMP/copy"
	timed sync sync --force "$TMP/file" "$pool"
	timed sync-same sync --force "$TMP/file" "$pool"
	rm -f "$TMP/back" "$TMP"/back.*
	fresh
	timed restore restore "$pool" "$TMP/back"
	cmp "$TMP/file" "$TMP/back" || lost "what came back differs"
}

fill
round >/dev/null
i=0
while [ "$i" -lt "$rounds" ]; do
	round
	i=$((i + 1))
done >"$RESULTS/$name"
