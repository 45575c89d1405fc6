# SPDX-License-Identifier: BSD-3-Clause
# A restore killed at any moment leaves no half file under the name, and the next one goes on.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c $((160 * 1024 * 1024)) /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null || fail "sync"
mv pool saved
rm pool.repl
kept=0
for delay in 0 0.02 0.05 0.1 0.2; do
	ctl_kill "$delay" restore "$T/p" pool
	if [ -e pool ]; then
		cmp -s pool saved || lost "half a file under the name"
		rm -f pool pool.repl
	fi
	[ ! -e pool.repl ] || fail "a record without data"
	[ ! -e pool.restoring ] || kept=1
done
[ "$kept" = 1 ] || fail "no kill came while data moved"

# What was there before the kill is not moved again.
head -c $((100 * 1024 * 1024)) saved >pool.restoring
moved=$(ctl restore --json "$T/p" pool | member moved)
[ "$moved" = $((60 * 1024 * 1024)) ] || fail "moved $moved"
cmp -s pool saved || lost "not equal after all"
ctl verify pool "$T/p" >/dev/null || lost "verify"
ctl sync --json pool "$T/p" >out || fail "sync"
[ "$(member moved <out)" = 0 ] || fail "sync after restore moved $(member moved <out)"

# One restore at a time; a longer leftover is cut; no way through a link.
rm -f pool pool.repl
head -c $((200 * 1024 * 1024)) /dev/zero >pool.restoring
exec 9<pool.restoring
flock 9
ctl_fails 4 "another restore" restore "$T/p" pool
exec 9<&-
ctl restore "$T/p" pool >/dev/null || fail "restore over a longer leftover"
cmp -s pool saved || lost "not equal after a longer leftover"
rm -f pool pool.repl
echo precious >victim
ln -s victim pool.restoring
ctl restore "$T/p" pool >/dev/null 2>&1 && fail "restored through a link"
[ "$(cat victim)" = precious ] || fail "wrote through a link"
