# SPDX-License-Identifier: BSD-3-Clause
# verify finds every byte that differs, on whichever side it was changed, and whoever chose it.
# What it says is of the file that has the name: not of one that was replaced meanwhile, or has not the size any more.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c $((20 * 1024 * 1024)) /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null || fail "sync"
ctl verify pool "$T/p" >out || lost "equal, and verify fails"
grep -q "^equal" out || fail "$(cat out)"

# flip FILE OFFSET...
flip() {
	python3 -c 'import sys
f = open(sys.argv[1], "r+b")
for off in map(int, sys.argv[2:]):
    f.seek(off); b = f.read(1); f.seek(off); f.write(bytes([b[0] ^ 1]))' "$@"
}

for off in 0 64 1000000 20971519; do
	flip serve/pools/p "$off"
	ctl_fails 1 "differ in 1 range, " verify pool "$T/p"
	grep -Eq "^ *$((off / 64 * 64))  *64$" "$TMP/out" || fail "at $off: $(cat "$TMP/out")"
	flip serve/pools/p "$off"
done
ctl verify --json pool "$T/p" | grep -q '"equal": true' || lost "JSON of equal"

# shellcheck disable=SC2046
flip pool $(seq 0 128 $((104 * 128)))
ctl_fails 1 "differ in 105 ranges" verify pool "$T/p"
ctl_fails 1 "next: replctl why $T/p says .*; replctl sync --dry-run pool $T/p, " verify pool "$T/p"
grep -q "^and 5 more" "$TMP/out" || fail "$(tail -n 2 "$TMP/out")"
ctl verify --json pool "$T/p" >out 2>err && fail "differs, and verify is content"
[ "$(member equal <out)" = False ] || fail "JSON of differing"
[ "$(member range_count <out)" = 105 ] || fail "count in JSON"
head -c 4096 pool >short
ctl_fails 1 "4096 bytes" verify short "$T/p"

# chosen N: a block of pool by who knows XXH3's own secret. Two words are multiplied by nothing there, and count by their
# sum alone, which is the same for each N.
chosen() {
	python3 -c 'import struct, sys
block = bytearray(65536)
struct.pack_into("<II", block, 0, 0x396CFEB8, 8 + int(sys.argv[1]))
struct.pack_into("<II", block, 64, 0x2C81017C, 8 - int(sys.argv[1]))
f = open("pool", "r+b")
f.seek(3 << 20)
f.write(block)' "$1"
}
chosen 0
ctl sync pool "$T/p" >/dev/null || fail "sync"
ctl verify pool "$T/p" >out || lost "equal, and verify fails"
chosen 1
ctl verify pool "$T/p" >out 2>err && lost "a block that was chosen for its hash is called equal: $(cat out)"
grep -q "differ in 1 range, " err || fail "$(cat err)"
ctl sync pool "$T/p" >/dev/null || fail "sync"
cmp -s pool serve/pools/p || lost "sync leaves out a block that was chosen for its hash"

# meanwhile PATTERN COMMAND...: done when verify has the file open, which fails then.
meanwhile() {
	local pattern=$1

	shift
	signalled STOP "$SERVE_PID"
	"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" verify pool "$T/p" >out 2>err &
	VERIFY=$!
	PIDS="$PIDS $VERIFY"
	wait_for 10 has_open || fail "verify does not open the file: $(cat err)"
	"$@"
	signalled CONT "$SERVE_PID"
	wait "$VERIFY"
	[ $? -eq 1 ] || fail "not failed after $*: $(cat out err)"
	grep -q "pool $pattern while it was being read" err || fail "no '$pattern': $(cat out err)"
	[ -s out ] && fail "it says something of the file: $(cat out)"
}
has_open() {
	[ -n "$(find "/proc/$VERIFY/fd" -lname "$TMP/pool" 2>/dev/null)" ]
}
ctl restore "$T/p" whole >/dev/null 2>err || fail "restore: $(cat err)"
cp whole pool
cp pool other
meanwhile "was replaced" mv other pool
meanwhile "was replaced" rm pool
cp whole pool
meanwhile "became shorter.*" truncate -s 1M pool
cp whole pool
ctl verify pool "$T/p" >out || lost "equal, and verify fails"
