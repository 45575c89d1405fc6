# SPDX-License-Identifier: BSD-3-Clause
# A record beside the file that can't be read, damaged or of a newer version, sends nobody to remove a replica: why and who is
# refused say what it is about, and doing as they say loses nothing.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null 2>&1 || fail "sync"
cp pool.repl good

# told WHAT REASON NEXT REFUSAL
told() {
	"$REPLCTL" --json why ./pool >out || fail "$1: why"
	[ "$(member reason <out)" = "$2" ] || fail "$1: $(cat out)"
	member next <out | grep -q "$3" || fail "$1: $(cat out)"
	! grep -Eqi "replctl remove|replica anew" out || fail "$1: a replica is to be removed: $(cat out)"
	! ctl sync pool "$T/p" >out 2>&1 || fail "$1: not refused"
	grep -q "pool.repl: .*$4" out || fail "$1: $(cat out)"
	! grep -Eqi "replctl remove|remove the pool|replica anew" out || fail "$1: a replica is to be removed: $(cat out)"
}

head -c 8192 /dev/zero >pool.repl
told damaged damaged "^rm ./pool.repl" "record of the local file"
printf other | dd of=pool conv=notrunc status=none
rm pool.repl
ctl_fails 6 "nothing was changed" sync pool "$T/p"
ctl restore "$T/p" was >/dev/null || fail "restore"
! cmp -s pool was || lost "the replica was overwritten"

python3 - <<'END' || fail "no record of a newer version"
import ctypes
sum64 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
sum64.restype = ctypes.c_uint64
slot = bytearray(open("good", "rb").read(4096))
slot[8] = 9
slot[16:24] = bytes(8)
slot[16:24] = sum64(bytes(slot), ctypes.c_size_t(4096)).to_bytes(8, "little")
open("pool.repl", "wb").write(slot * 2)
END
told newer version "install that version" "format version 9"
grep -q "^next: install the newer version" out || fail "newer: $(cat out)"

# What a newer version tells of the file may speak against the replica, also where the file is gone.
cp pool.repl newer
cp pool kept
for dry in "" --dry-run; do
	# shellcheck disable=SC2086
	ctl_fails 1 "format version 9" restore $dry --force "$T/p" pool
	cmp -s pool kept || lost "the file is replaced"
	next=$(sed -n 's/^next: install that version of librepl; or, .*: \(mv .*\); replctl \(restore [^;]*\); if it was .*/\1; ctl \2/p' err)
	[ -n "$next" ] || fail "$(cat err)"
done
mv pool away
ctl_fails 1 "format version 9" restore "$T/p" pool
grep -q "^next: install that version of librepl; or, .*: mv -n pool.repl pool.old.repl; replctl restore $T/p pool; if it was a primary, then replctl promote " err ||
	fail "$(cat err)"
[ ! -e pool ] || lost "it is restored over that record"
cmp -s pool.repl newer || lost "the record of a newer version is gone"
mv away pool
eval "$next" >/dev/null 2>err || fail "$next: $(cat err)"
cmp -s pool.old kept && cmp -s pool.old.repl newer || lost "file and record are not kept"
cp newer pool.repl

# The same of a replica, whose target is the one to get another version: both speak one protocol.
cat pool.repl >"$TMP/serve/pools/p.repl"
ctl_fails 1 "^next: install the version of repld that made it, or a newer one, on the target" info "$T/p"
ctl_fails 1 "format version 9, .* a newer version made it" remove --force "$T/p"
ctl list "$T" >out || fail "list"
grep -q "^p  *-  *newer " out || fail "nobody is to take it for a damaged one: $(cat out)"
# A link to itself stands in for whatever keeps a target from reading it.
mv "$TMP/serve/pools/p.repl" theirs
ln -s p.repl "$TMP/serve/pools/p.repl"
ctl list "$T" >out || fail "list"
grep -q "^p  *-  *unreadable " out || fail "$(cat out)"
rm "$TMP/serve/pools/p.repl"
mv theirs "$TMP/serve/pools/p.repl"
ctl --json why "$T/p" >out || fail "why of a replica of a newer version"
[ "$(member reason <out)" = version ] || fail "$(cat out)"
member next <out | grep -q "the version of repld .* on the target" || fail "$(cat out)"
