# SPDX-License-Identifier: BSD-3-Clause
# A device fails to write and is well again; what it has lost looks like what is there for as long as somebody has
# it mapped. The next writer does not take that for a copy.
. "$(dirname "$0")/full_lib.sh"

# A disk that has less space than it says.
thin=$TMP/thin
mkdir "$thin" && mount -t tmpfs -o size=12m tmpfs "$thin" || exit 77
truncate -s 64m "$thin/disk"
make_keys
make_serve_dir
# Without a journal, for which it would be one error too many.
mkfs.ext4 -q -F -O ^has_journal -b 4096 -m 0 -I 256 "$thin/disk" && mount -o loop "$thin/disk" "$pools" || exit 77
rmdir "$pools/lost+found"
chown "$SERVE_USER" "$pools"
chmod 700 "$pools"
trap 'code=$?; umount -l "$pools" "$thin"; (exit $code); cleanup' EXIT
start_serve
start_api

configure "$(pool p)"
ok set lanes 2
stay_lost
ok map "$TMP/local" $((4 * MIB + 777))
ok open 5
ok put 0 $MIB 1
ok persist 0 0 $MIB
python3 -c 'import mmap, os, sys, time
pool = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, prot=mmap.PROT_READ)
sum(pool[i] for i in range(0, len(pool), 4096))
print("mapped", flush=True)
time.sleep(600)' "$pools/p" >"$TMP/reader" &
reader=$!
PIDS="$reader $PIDS"
wait_for 10 grep -q mapped "$TMP/reader" || fail "nobody has it mapped"
cat /dev/zero >"$thin/filler" 2>/dev/null
# By the round log, which has its space: the pool itself is not synced.
ok put $((3 * MIB)) 64 3
ok persist 1 $((3 * MIB)) 64
established 0 || fail "lost too early: $TEXT"
ok put $((2 * MIB)) $MIB 2
# And the last bytes, which fill no page.
ok put $((4 * MIB + 77)) 700 2
ok flush 0 $((4 * MIB + 77)) 700
ok persist 0 $((2 * MIB)) $MIB
degraded 0 || fail "not lost: $TEXT"
grep "flush failed" "$TMP/serve.log" || fail "no flush has failed"
# Killed, it leaves no map of what the replica misses.
kill -KILL "$(api_child)"
wait_for 20 no_sessions || fail "the session stays"
rm "$thin/filler"
# Acknowledged, and nobody is there to bring it again.
# (The first one may be told what was lost.)
ctl probe "$(pool p)" >/dev/null || ctl probe "$(pool p)" >/dev/null || fail "probe"
cmp -n 64 -i $((3 * MIB)) "$TMP/local" "$pools/p" || lost "the log was not brought in"
sync "$pools/p"
python3 -c 'import mmap, os, sys
media = mmap.mmap(-1, 4096)
os.preadv(os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), [media], 3 << 20)
local = os.pread(os.open(sys.argv[2], os.O_RDONLY), 64, 3 << 20)
sys.exit(media[:64] != local)' "$pools/p" "$TMP/local" || fail "what the log had is not on media"
start_api
configure "$(pool p)"
ok map "$TMP/local" $((4 * MIB + 777))
ok open 1
established 0 || fail "not there: $TEXT"
ok close
equal "$TMP/local" "$pools/p"
kill $reader
wait $reader 2>/dev/null
sync "$pools/p"
# What is left in memory is what the device has.
for i in 1 2 3; do
	python3 -c 'import os, sys
os.posix_fadvise(os.open(sys.argv[1], os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)' "$pools/p"
done
equal "$TMP/local" "$pools/p"
grep -q "bytes in memory were not on media" "$TMP/serve.log" || fail "it is not told"
