# SPDX-License-Identifier: BSD-3-Clause
# why says of a file that was left half way as a replica what a program would say, and of one that is gone how to have it
# back: the record beside it tells.
. "$(dirname "$0")/../fault/fault.sh"
start_target
T=$target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >file
ctl sync file "$T/p" >/dev/null || fail "sync"

# told FILE REASON NEXT
told() {
	"$REPLCTL" --json why "$1" >out 2>err || fail "why $1: $(cat out err)"
	[ "$(member reason <out)" = "$2" ] || fail "not $2: $(cat out)"
	member next <out | grep -q "$3" || fail "$2: $(cat out)"
}

# take STATE: own is the replica as it lies, in that state.
take() {
	{
		hello
		request pool.open '{"name":"p","mode":"write"}'
		request pool.mark '{"state":"'"$1"'"}'
		request pool.close
		request bye
	} | raw_session >out || fail "the session failed"
	cp serve/pools/p own
	cp serve/pools/p.repl own.repl
}

for state in outdated inconsistent; do
	take "$state"
	first=
	[ "$state" != outdated ] || first="replctl newest TARGET/POOL .*; then "
	told ./own "$state" "^${first}replctl restore --force TARGET/POOL ./own.*replctl promote --force"
	ctl_fails 4 "local file is $state" sync own "$T/q"
done
ctl sync file "$T/p" >/dev/null 2>err || fail "sync: $(cat err)"
ctl restore --force "$T/p" own >/dev/null 2>err || fail "as it says: $(cat err)"
told ./own none "^replctl verify ./own"

# A round log that its writer has left, and that nobody has brought in.
cp own.repl good
python3 - <<'END' || fail "no record with a round log"
import ctypes
sum64 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
sum64.restype = ctypes.c_uint64
slot = bytearray(open("good", "rb").read(4096))
slot[8] = 3
slot[528:536] = (8192).to_bytes(8, "little")
slot[536:544] = (65536).to_bytes(8, "little")
slot[16:24] = bytes(8)
slot[16:24] = sum64(bytes(slot), ctypes.c_size_t(4096)).to_bytes(8, "little")
open("own.repl", "wb").write(slot * 2)
END
truncate -s 73728 own.repl
told ./own writer-gone "^replctl probe TARGET/POOL"
grep -q "holds a round log" out || fail "$(cat out)"
ctl_fails 4 "own.repl holds a round log" sync own "$T/q"

rm own
cp good own.repl
for name in own ./own; do
	told "$name" damaged "; else replctl newest TARGET/POOL.*replctl restore TARGET/POOL $name"
	grep -q "the record beside the file is there, the file is not" out || fail "$(cat out)"
done
ctl restore "$T/p" own >/dev/null 2>err || fail "as it says: $(cat err)"
cmp -s own file || lost "it is not what it was"
rm own own.repl
ctl_fails 3 "^next: name a local pool file" why own
