# SPDX-License-Identifier: BSD-3-Clause
# Where the disk has no room for a journal it is refused, the pool is as it was, and a smaller one works.
. "$(dirname "$0")/fault.sh"
STAGE_LOAD=$BUILD/tests/fault/stage_load
[ "$(id -u)" -eq 0 ] || exit 77
mkdir -p "$TMP/serve/pools"
mount -t tmpfs -o size=24m,mode=0700,uid="$(id -u "$SERVE_USER")" none "$TMP/serve/pools" 2>/dev/null || exit 77
trap '(status=$?; umount -l "$TMP/serve/pools"; exit $status); cleanup' EXIT
start_target

load() {
	mode=$1
	shift
	timeout 60 "$STAGE_LOAD" -i "$TMP/key" -k "$TMP/known_hosts" "$mode" "$target/$@" 2>&1
}

load rounds large $((16 << 20)) 1 1 1 >"$TMP/out" && fail "16 MiB beside 16 MiB in 24 MiB"
grep -q "no space\|nospc\|bytes wanted\|free" "$TMP/out" || fail "no reason: $(cat "$TMP/out")"
load check large "$TMP/serve/pools/large" 0 >"$TMP/out" || lost "$(cat "$TMP/out")"
grep -q "^round 0$" "$TMP/out" || lost "the pool has changed: $(cat "$TMP/out")"
[ "$(stat -c %s "$TMP/serve/pools/large.repl")" -eq 8192 ] || fail "space is left behind"
load rounds small $((2 << 20)) 3 1 1 >"$TMP/out" || fail "small: $(cat "$TMP/out")"
load check small "$TMP/serve/pools/small" 3 >"$TMP/out" || lost "$(cat "$TMP/out")"
