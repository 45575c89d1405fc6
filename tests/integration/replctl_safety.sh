# SPDX-License-Identifier: BSD-3-Clause
# sync never overwrites a replica that is newer or diverged, restore never harms a file.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >pool

ctl sync pool "$T/p" >/dev/null || fail "sync"
ctl restore "$T/p" other >/dev/null || fail "restore"
change other 5000
ctl sync other "$T/p" >/dev/null || fail "sync of the newer"
change pool 9000
cp serve/pools/p saved
ctl_fails 4 "newer.*" sync pool "$T/p"
grep -q "next: .*replctl restore $T/p .*replctl sync --force pool $T/p" err || fail "$(cat err)"
ctl_fails 4 "newer" sync --dry-run pool "$T/p"
cmp -s saved serve/pools/p || lost "a refused sync has changed the replica"
[ "$(ctl info --json "$T/p" | member state)" = up-to-date ] || fail "state after a refusal"

# Both went on from the same generation: the one through another replica.
ctl sync pool "$T/p2" >/dev/null || fail "sync to a second replica"
ctl_fails 6 "diverged" sync pool "$T/p"
rm pool.repl
ctl_fails 6 "nothing is known" sync pool "$T/p"
ctl sync --force pool "$T/p" >/dev/null || fail "by force"
cmp -s pool serve/pools/p || lost "forced, and not equal"

# Equal contents need no generation.
rm pool.repl
ctl sync pool "$T/p" | grep -q "equals" || fail "equal contents"
ctl sync pool "$T/p" >/dev/null || fail "sync after taking the generation over"

# What was never written, as where the first sync has failed, is no replica of anything.
ctl create "$T/never" --size 1M >/dev/null || fail "create"
ctl_fails 4 "never been written" restore "$T/never" kept2
ctl_fails 4 "never been written" restore --dry-run "$T/never" kept2
[ ! -e kept2 ] || fail "a file of zeros"
ctl restore --force "$T/never" kept2 >out 2>&1 || fail "by force: $(cat out)"
grep -q 'never been written.*all the same' out || fail "not told: $(cat out)"

# Sizes, kinds and users of files.
head -c 65536 pool >small
ctl_fails 4 "65536 bytes.*1048576" sync small "$T/p"
: >empty
ctl_fails 2 "is empty" sync empty "$T/p"
mkfifo fifo
ctl_fails 2 "not a regular file" sync fifo "$T/p"
ctl_fails 2 "not a regular file" sync . "$T/p"
ctl_fails 3 "No such file" sync none "$T/p"
ln -s pool link
ctl sync link "$T/p" >/dev/null || fail "sync by a link"
[ ! -e link.repl ] || fail "a record beside a link"
ctl_fails 4 "not a regular file" restore --force "$T/p" link
ctl_fails 4 "not a regular file" restore --force "$T/p" fifo
ctl_fails 3 "directory" restore "$T/p" none/file
# why_held LOCKED: it is told who has it, and no command that is refused for that.
why_held() {
	ctl why ./pool >out || fail "why of what is locked"
	grep -q "^reason *none: .* has it" out && grep -q "$1 is locked$" out &&
		grep -q "^next *fuser -v ./pool ./pool.repl tells who has it; " out || fail "$(cat out)"
	! grep -qE "replctl (verify|sync|restore)|rm " out || fail "$(cat out)"
}
exec 9<pool
flock 9
ctl_fails 4 "locked: a program has the pool open" sync pool "$T/p"
ctl_fails 4 "locked: a program has the pool open" restore --force "$T/p" pool
why_held pool
mv pool.repl away
why_held pool
head -c 4096 /dev/zero >pool.repl
why_held pool
mv away pool.repl
exec 9<&-
exec 9<pool.repl
flock 9
ctl_fails 4 "another program replicates" sync pool "$T/p"
ctl_fails 4 "another program replicates" restore --force "$T/p" pool
why_held pool.repl
exec 9<&-
ctl why ./pool | grep -q "^next *replctl verify" || fail "$(ctl why ./pool)"

# A writer on the target: no second one, and no restore of what it is changing.
hold p write
ctl_fails 4 "next: " sync pool "$T/p"
ctl_fails 4 "next: " restore "$T/p" copy
[ ! -e copy ] || fail "restored what is being written"
stop "$HOLD_PID"
is_unknown() {
	[ "$(ctl info --json "$T/p" | member state)" = unknown ]
}
wait_for 20 is_unknown || fail "a writer that went away"
ctl restore "$T/p" copy >out 2>err || fail "restore of an unknown one: $(cat err)"
grep -q "acknowledged" err || fail "no notice: $(cat err)"
cmp -s copy pool || lost "restored data differ"
