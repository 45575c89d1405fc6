# SPDX-License-Identifier: BSD-3-Clause
# Of replicas of which an outdated one has the most, as newest says, the commands that it advises take that one; who
# begins with another command is sent to newest, and not to a replica that has less. Nor is one that is outdated beside
# the one that has all to take the place of what was restored from that.
. "$(dirname "$0")/api_lib.sh"
start_target
cd "$TMP" || exit 1
P=serve/pools
head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/q" >/dev/null || fail "sync to q"
head -c 4096 /dev/urandom | dd of=pool bs=4096 seek=3 conv=notrunc status=none
ctl sync pool "$T/p" >/dev/null || fail "sync to p"

# As a copy that was cut off between two of its journals leaves it.
mark_pool p outdated

# In place, as a program's own file, it is not replaced by the one that has less, nor advised to be.
cp $P/p own && cp $P/p.repl own.repl && cp own.repl record
# keeps WHY ARG...
keeps() {
	local why=$1 status

	shift
	ctl "$@" >out 2>err
	status=$?
	cmp -s own $P/p && cmp -s own.repl record || lost "$*: what only it has is replaced"
	[ "$status" -eq 4 ] || fail "$*: exit $status: $(cat out err)"
	grep -q "$why" err || fail "$*: $(cat err)"
	sed "s,$TMP/,,g" err | grep -q "^next: replctl newest $T/q, .*replctl promote --force TARGET/POOL .*: mv -n own own.old; mv -n own.repl own.old.repl; replctl restore --force $T/q own$" ||
		fail "$*: $(cat err)"
}
keeps "own is not replaced by .*it lacks what the file has been given since" restore --force "$T/q" own
keeps "own is not replaced by .*it lacks what the file has been given since" restore --dry-run --force "$T/q" own
keeps "nothing to resolve: the replica is only behind" resolve --force --discard local own "$T/q"
ctl_fails 4 "local file is outdated.*replctl newest.*replctl restore" sync own "$T/q"
ctl why ./own >out || fail "why: $(cat out)"
grep -q "^next  *replctl newest TARGET/POOL" out || fail "$(cat out)"
rm own
ctl restore "$T/q" own >out 2>err
status=$?
[ ! -e own ] && cmp -s own.repl record || lost "the older one is taken"
[ "$status" -eq 4 ] || fail "exit $status: $(cat out err)"
grep -q "own is gone, and own.repl tells of a later generation" err || fail "$(cat err)"

for command in "restore $T/p file" "promote $T/p"; do
	# shellcheck disable=SC2086
	ctl_fails 4 "outdated" $command
	grep -q "^next: replctl newest $T/p, .* has more; replctl ${command%% *} --force $T/p" err || fail "$(cat err)"
done
ctl newest "$T/q" "$T/p" >out || fail "newest: $(cat out)"
grep -q "^newest  *$T/p$" out || fail "$(cat out)"
grep -A 1 "^$T/p  *outdated .* ? " out | grep -q "it misses updates" || fail "nothing says what it is: $(cat out)"
restore=$(sed -n 's/^next  *replctl //p' out)
promote=$(sed -n 's/.*or, to go on at its target: replctl //p' out)
# shellcheck disable=SC2086
ctl ${restore%FILE} file >out 2>err || fail "$restore: $(cat err)"
cmp -s file $P/p || lost "it is not what p has"
ctl sync file "$T/q" >/dev/null 2>err || fail "the other one does not follow: $(cat err)"
# shellcheck disable=SC2086
ctl $promote >out 2>err || fail "$promote: $(cat err)"

# Its program goes on there, is killed, and the old primary comes back: nothing stands in its way any more.
cp pool old && cp pool.repl old.repl
ctl resolve --dry-run --discard local old "$T/p" >out 2>err || fail "look: $(cat err)"
printf '\001' | dd of=$P/p bs=1 seek=9000 conv=notrunc status=none
ctl demote "$T/p" >out || fail "demote: $(cat out)"
ctl resolve --force --discard local old "$T/p" >out 2>err || fail "the old primary takes it: $(cat err)"
printf '\002' | dd of=old bs=1 seek=9001 conv=notrunc status=none
ctl sync old "$T/p" >/dev/null 2>err || fail "the replica does not follow: $(cat err)"
cmp -s old $P/p || lost "they differ"

# As a laggard is told of the loss of the one that has all.
ctl sync file "$T/r" >/dev/null 2>err || fail "sync to r: $(cat err)"
before=$(ctl info --json "$T/q" | member generation)
head -c 4096 /dev/urandom | dd of=file bs=4096 seek=5 conv=notrunc status=none
ctl sync file "$T/q" >/dev/null || fail "sync to q"
mark_pool r outdated ',"generation":"00000000-0000-4000-8000-000000000001","history":["'"$before"'"]'
ctl newest "$T/r" "$T/q" | grep -q "^newest  *$T/q$" || fail "r is taken for the newest"
ctl restore "$T/q" again >/dev/null || fail "restore of q"
start_api
configure "$T/r" "$T/q"
ok map "$TMP/again" $MIB
refused REPL_E_DIVERGED "/r: .*diverged.*; next: replctl resolve --dry-run --discard replica FILE $T/r .*outdated" open
[[ $TEXT != *"discard local"* ]] || fail "$TEXT"
ctl resolve --force --discard replica again "$T/r" >/dev/null 2>err || fail "resolve: $(cat err)"
ok open
for i in 0 1; do
	ok compare $i
	same
done
ok close
stop_api
