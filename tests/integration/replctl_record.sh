# SPDX-License-Identifier: BSD-3-Clause
# The record beside a file: found from a link to the file, and missed where it can't be written.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null || fail "sync"

# By a link, from another directory, it is the same file.
mkdir links
ln -s ../pool links/link
"$REPLCTL" --json why ./links/link >out || fail "why"
grep -q "closed it in order" out || fail "why of a link: $(cat out)"
[ "$(member reason <out)" = none ] || fail "why of a link: $(cat out)"

# What is to be typed next has each blank of its name.
cp pool "two  blanks"
"$REPLCTL" why "./two  blanks" >out || fail "why"
grep -q "^next .*'\./two  blanks'" out || fail "a blank is lost: $(cat out)"

# A file that is whole, and whose record found no room: both is told, and what helps.
[ "$(id -u)" -eq 0 ] || exit 0
cat >small <<'END'
mkdir -p disk && mount -t tmpfs -o size=8M,nr_inodes=2 tmpfs disk || exit 77
"$REPLCTL" --identity key --known-hosts known_hosts restore "$T/p" disk/pool
status=$?
cmp pool disk/pool || status=99
exit "$status"
END
export REPLCTL T
unshare -m sh small >out 2>err
status=$?
[ "$status" -ne 77 ] || exit 0
[ "$status" -eq 1 ] || fail "exit $status: $(cat out err)"
grep -q "disk/pool is restored.*disk/pool.repl" err || fail "$(cat err)"
grep -q "next: .*replctl restore --force $T/p disk/pool" err || fail "$(cat err)"
